"""Plan documents to audit: everything on measured rates, terms and fees, an hourly profile, analytic estimates."""

import copy
import json
from functools import cache

from catalog import load_catalog
from optimizer.problem.load import parse_problem
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings

EVERYTHING = """
name: everything
horizon: {months: 24, periods: yearly}
finance: {discount_rate: 6 %}
site: {electricity: 0.1 USD/kWh, pue: 1.3, hosting: 100 USD/kW/month, power_limit_it: 100 kW}
slices: [{name: day, share_of_hours: 0.5}, {name: night, share_of_hours: 0.5}]
gpus: {A: {}, B: {}}
workloads:
  - name: chat
    kind: service
    headroom: 10 %
    traffic: {by_slice: {day: 1.0, night: 0.25}, by_period: [1.0, 1.3], growth: 1 %/month}
    classes: [{name: short, requests_per_s: 30}, {name: long, requests_per_s: 9}]
  - name: search
    kind: service
    data: {regions: [eu-*]}
    traffic: {mean_requests_per_s: 20, by_slice: {day: 1.5, night: 0.5}}
  - name: finetune
    kind: batch
    work: {amount: 90000, unit: samples}
    start: month 5
    deadline: 20 days
    min_gpus: 4
    max_gpus: 30
    spread: one-gpu-type
  - {name: report, kind: batch, work: {amount: 4000, unit: pages}, start: 0 h, deadline: 3 days, max_gpus: 12}
measurements:
  - {workload: chat, gpu: A, class: short, requests_per_s: 3, gpus_per_replica: 2}
  - {workload: chat, gpu: A, class: long, requests_per_s: 1.2, gpus_per_replica: 2}
  - {workload: chat, gpu: B, class: short, requests_per_s: 1.0, gpus_per_replica: 1}
  - {workload: chat, gpu: B, class: long, requests_per_s: 0.3, gpus_per_replica: 1}
  - {workload: search, option: a-cloud, requests_per_s: 9, gpus_per_replica: 8}
  - {workload: search, option: b-cloud, requests_per_s: 5, gpus_per_replica: 4}
  - {workload: finetune, gpu: A, per_gpu_hour: 20}
  - {workload: finetune, gpu: B, per_gpu_hour: 8}
  - {workload: report, gpu: B, per_gpu_hour: 9}
options:
  catalog: false
  quotes:
    - {name: a-own, gpu: A, gpus_per_node: 4, provider: own, purchase: owned, price: 60000 USD, installation: 2000 USD,
       lead_time: 3 months, useful_life: 48 months, power: 3 kW, idle_power: 1 kW, load_power: 2.8 kW,
       maintenance: 5 %/year, max_nodes: 3,
       residual: [{age: 0 months, fraction: 1}, {age: 12 months, fraction: 0.6}, {age: 48 months, fraction: 0.1}]}
    - {name: a-res, gpu: A, gpus_per_node: 8, provider: P, region: eu-1, purchase: reserved, price: 9 USD/h,
       term: 12 months, upfront: 5000 USD, min_nodes: 2, availability: 0.99}
    - {name: a-long, gpu: A, gpus_per_node: 8, provider: P, region: us-1, purchase: reserved, price: 8.5 USD/h,
       term: 18 months}
    - {name: a-cloud, gpu: A, gpus_per_node: 8, provider: P, region: eu-2, purchase: on-demand, price: 16 USD/h}
    - {name: b-cloud, gpu: B, gpus_per_node: 4, provider: Q, region: eu-1, purchase: on-demand, price: 1.2 USD/h,
       per: gpu}
    - {name: b-spot, gpu: B, gpus_per_node: 1, provider: Q, region: us-1, purchase: spot, price: 0.4 USD/h,
       interruptions_per_hour: 0.02, hours_lost: 0.5 h, max_nodes: 40}
  existing:
    - {name: a-old, gpu: A, gpus_per_node: 4, nodes: 2, age: 20 months, paid: 50000 USD, useful_life: 48 months,
       residual: 10 %, power: 3 kW, maintenance: 4 %/year, retire: 38 months}
    - {name: b-signed, gpu: B, gpus_per_node: 4, nodes: 1, term: 7 months, fee: 3 USD/h}
limits:
  capex: 400000 USD
  opex: 900000 USD/month
  npv: 9000000 USD
  spot_share: {chat: 0.3, finetune: 0.5}
  providers: {P: {max_nodes: 30}, Q: {max_nodes: 90}}
  stock: {a-cloud: 20}
  gpus: {B: 120}
"""

ANALYTIC = """
name: analytic
horizon: {months: 6, periods: quarterly}
finance: {discount_rate: 8 %}
slices:
  - {name: day, share_of_hours: 0.5, hours_of_week: [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
     30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41]}
  - {name: night, share_of_hours: 0.5, hours_of_week: [0, 1, 2, 3, 4, 5, 18, 19, 20, 21, 22, 23,
     24, 25, 26, 27, 28, 29, 42, 43, 44, 45, 46, 47]}
workloads:
  - name: assistant
    kind: service
    model: llama-3.1-8b
    weights: [bf16, fp8]
    traffic: {peak_requests_per_s: 30, by_slice: {day: 1.0, night: 0.2}}
    classes: [{name: short, share: 70 %, input: 400, output: 150}, {name: long, share: 30 %, input: 3000, output: 300}]
    latency: {p95_ttft: 2 s, p95_tpot: 80 ms}
  - name: summaries
    kind: batch
    model: llama-3.1-8b
    requests: {per_day: 150_000, input: 1500, output: 200}
    window: {daily: "18:00-06:00"}
  - {name: index, kind: batch, model: llama-3.1-8b, tokens: 2e9, repeat: quarterly, start: 0 h, deadline: 10 days}
options:
  catalog: false
  gpus: [L40S, H100-80GB-SXM]
  quotes:
    - {name: h-cloud, gpu: H100-80GB-SXM, gpus_per_node: 2, provider: P, purchase: on-demand, price: 5 USD/h,
       date: 2026-01-05}
    - {name: h-res, gpu: H100-80GB-SXM, gpus_per_node: 2, provider: P, purchase: reserved, price: 3.2 USD/h,
       term: 6 months}
    - {name: l-cloud, gpu: L40S, gpus_per_node: 1, provider: Q, purchase: on-demand, price: 1.1 USD/h, date: 2026-02-05}
    - {name: l-dear, gpu: L40S, gpus_per_node: 1, provider: R, purchase: on-demand, price: 1.9 USD/h}
    - {name: h-spot, gpu: H100-80GB-SXM, gpus_per_node: 1, provider: P, purchase: spot, price: 1.4 USD/h}
limits: {spot_share: 0.2}
"""

PROFILE = """
name: profile
horizon: {months: 2.5, periods: monthly}
gpus: {A: {}}
workloads:
  - name: chat
    kind: service
    traffic: {peak_requests_per_s: 10, profile: office-hours}
  - {name: backup, kind: batch, work: {amount: 500, unit: files}, repeat: monthly, start: 0 h, deadline: 12 days,
     window: {daily: "22:00-05:00"}}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 1}
  - {workload: backup, gpu: A, per_gpu_hour: 2}
options:
  catalog: false
  quotes:
    - {name: cloud, gpu: A, purchase: on-demand, price: 2 USD/h}
    - {name: month, gpu: A, purchase: reserved, price: 1.1 USD/h, term: 1 months, cancellable: true}
"""

HELD = """
name: held
horizon: {months: 12, periods: [{start_month: 0, months: 6}, {start_month: 6, months: 6}]}
finance: {discount_rate: 10 %}
gpus: {A: {}}
workloads:
  - {name: chat, kind: service, traffic: {mean_requests_per_s: 30, by_period: [0.7, 1.0]}}
measurements: [{workload: chat, gpu: A, requests_per_s: 5, gpus_per_replica: 2}]
options:
  catalog: false
  quotes:
    - {name: eight, gpu: A, gpus_per_node: 2, purchase: reserved, price: 2 USD/h, term: 8 months, upfront: 300 USD,
       min_nodes: 2, availability: 0.98}
    - {name: year, gpu: A, gpus_per_node: 4, purchase: reserved, price: 3.6 USD/h, term: 12 months, cancellable: true,
       max_nodes: 1, lead_time: 1 months}
    - {name: cloud, gpu: A, gpus_per_node: 2, purchase: on-demand, price: 6 USD/h, max_nodes: 6}
"""

BURDENED = """
name: burdened
horizon: {months: 30, periods: yearly}
finance:
  discount_rate: 7 %
  opex_escalation: {electricity: 4 %, hosting: 2 %, maintenance: 3 %, rent: -10 %, staff: 5 %, support: 3 %,
    egress: 1 %}
site: {electricity: 0.2 USD/kWh, pue: 1.2, hosting: 90 USD/kW/month}
gpus: {A: {}, B: {}}
workloads:
  - {name: chat, kind: service, headroom: 25 %, traffic: {mean_requests_per_s: 8, by_period: [1.0, 1.6, 2.0]}}
  - {name: tune, kind: batch, work: {amount: 9000, unit: samples}, start: month 10, deadline: 90 days, gpus: [B]}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 2}
  - {workload: tune, gpu: B, per_gpu_hour: 3}
options:
  catalog: false
  quotes:
    - {name: mine, gpu: A, gpus_per_node: 4, purchase: owned, price: 20000 USD, installation: 700 USD, power: 2 kW,
       maintenance: 4 %/year, max_nodes: 1, useful_life: 40 months, residual: 10 %}
    - {name: term, gpu: A, gpus_per_node: 2, provider: P, purchase: reserved, price: 1 USD/h, term: 20 months,
       upfront: 900 USD, max_nodes: 2}
    - {name: cloud, gpu: A, gpus_per_node: 2, provider: Q, purchase: on-demand, price: 3 USD/h}
    - {name: spot, gpu: B, provider: Q, purchase: spot, price: 0.5 USD/h}
  existing:
    - {name: old, gpu: A, gpus_per_node: 2, nodes: 1, age: 20 months, paid: 9000 USD, power: 1 kW, retire: 45 months}
costs:
  - {kind: staff, name: platform team, monthly: 900 USD/month}
  - {kind: staff, name: project, monthly: 24_000 USD/year, start_month: 3, end_month: 15.5}
  - {kind: network, once: 350 USD, per: gpu, purchase: [owned], end_month: 20}
  - {kind: network, name: setup, once: 4000 USD, start_month: 2}
  - {kind: support, monthly: 40 USD/month, per: node}
  - {kind: insurance, monthly: 3 USD/month, per: kw, start_month: 1}
  - {kind: storage, per_gb: 0.02 USD/GB, gb_per_month: 30_000}
  - {kind: egress, per_gb: 0.08 USD/GB, gb_per_1000_requests: 0.02, workload: chat, provider: "[PQ]"}
  - {kind: tax, percent: 8 %, of: purchases}
  - {kind: tax, name: cloud levy, percent: 3 %, of: rent, provider: Q}
  - {kind: other, percent: 1 %, of: all}
limits: {capex: 90000 USD, opex: 90000 USD/month, npv: 900000 USD}
"""

APART = """
name: apart
horizon: {months: 3, periods: quarterly}
costs: [{kind: egress, per_gb: 0.09 USD/GB, gb_per_1000_requests: 0.05, workload: assistant}]
slices: [{name: day, share_of_hours: 0.5}, {name: night, share_of_hours: 0.5}]
workloads:
  - name: assistant
    kind: service
    model: llama-3.1-8b
    gpus_per_replica: 1
    disaggregated: allowed
    kv_transfer: 5 GB/s
    traffic: {peak_requests_per_s: 20, by_slice: {day: 1.0, night: 0.3}}
    classes: [{name: short, share: 70 %, input: 1000, output: 150}, {name: long, share: 30 %, input: 6000, output: 300}]
    latency: {p95_ttft: 2 s, p95_tpot: 35 ms, p95_end_to_end: 14 s}
options:
  catalog: false
  gpus: [L40S, H100-80GB-SXM]
  quotes:
    - {name: h-cloud, gpu: H100-80GB-SXM, gpus_per_node: 2, provider: P, purchase: on-demand, price: 4.4 USD/h}
    - {name: l-cloud, gpu: L40S, gpus_per_node: 1, provider: P, purchase: on-demand, price: 0.7 USD/h}
    - {name: l-own, gpu: L40S, gpus_per_node: 4, purchase: owned, price: 40000 USD, power: 2 kW, lead_time: 1 months}
    - {name: h-else, gpu: H100-80GB-SXM, gpus_per_node: 2, provider: Q, purchase: on-demand, price: 4.2 USD/h}
"""

LIMITED = """
name: limited
horizon: {months: 24, periods: yearly}
site: {electricity: 0.1 USD/kWh, pue: 1.3, power_limit_it: 30 kW, power_limit_facility: 27 kW, rack_units_limit: 30}
gpus: {A: {}, B: {}}
workloads:
  - {name: chat, kind: service, min_replicas: 9, traffic: {mean_requests_per_s: 9, by_period: [0.8, 1.4]}}
  - {name: tune, kind: batch, work: {amount: 900, unit: samples}, start: month 3, deadline: 20 days,
     checkpoint_every: 4 h, restart: 15 min}
  - {name: redo, kind: batch, work: {amount: 60, unit: samples}, start: month 5, deadline: 20 days, checkpoints: false}
  - {name: long, kind: batch, work: {amount: 600, unit: samples}, start: month 6, deadline: 20 days}
measurements:
  - {workload: redo, gpu: B, per_gpu_hour: 2}
  - {workload: long, gpu: B, per_gpu_hour: 2}
  - {workload: chat, gpu: A, requests_per_s: 1}
  - {workload: chat, gpu: B, requests_per_s: 0.5}
  - {workload: tune, gpu: B, per_gpu_hour: 3}
options:
  catalog: false
  quotes:
    - {name: own, gpu: A, gpus_per_node: 2, purchase: owned, price: 9000 USD, power: 6 kW, pue: 1.4, rack_units: 6}
    - {name: made, gpu: A, purchase: owned, provider: maker, price: 4000 USD, power: 2 kW, rack_units: 4}
    - {name: res, gpu: A, purchase: reserved, provider: north, price: 1 USD/h, term: 12 months}
    - {name: cloud, gpu: A, purchase: on-demand, provider: south, price: 1.5 USD/h}
    - {name: b-cloud, gpu: B, purchase: on-demand, provider: west, price: 0.4 USD/h}
    - {name: b-spot, gpu: B, purchase: spot, provider: west, price: 0.1 USD/h, interruptions_per_hour: 0.02}
  existing:
    - {name: old, gpu: A, nodes: 1, age: 20 months, paid: 5000 USD, power: 2 kW, rack_units: 2}
    - {name: b-signed, gpu: B, nodes: 1, term: 7 months, fee: 1 USD/h, provider: east}
limits: {capex_by_period: [20000 USD, null], capex_by_year: [18000 USD, 10000 USD], vendors: {max: 3}}
"""

STARTING = """
name: starting
horizon: {months: 3, periods: once}
gpus: {A: {}, B: {}}
workloads:
  - name: chat
    kind: service
    startup: 15 min
    min_replicas: 2
    traffic: {mean_requests_per_s: 4, profile: [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 1, 1, 0, 0]}
  - {name: search, kind: service, startup: 6 min, redundancy: n+1,
     traffic: {mean_requests_per_s: 3,
       profile: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1]}}
  - {name: tune, kind: batch, work: {amount: 900, unit: samples}, deadline: 20 days, window: {daily: "20:00-06:00"}}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 2}
  - {workload: chat, gpu: B, requests_per_s: 0.7}
  - {workload: search, gpu: A, requests_per_s: 1.5}
  - {workload: search, gpu: B, requests_per_s: 0.5}
  - {workload: tune, gpu: B, per_gpu_hour: 3}
options:
  catalog: false
  quotes:
    - {name: a-cloud, gpu: A, gpus_per_node: 2, provider: P, purchase: on-demand, price: 3 USD/h, max_nodes: 3}
    - {name: b-term, gpu: B, provider: Q, purchase: reserved, price: 0.4 USD/h, term: 3 months, max_nodes: 3}
    - {name: b-cloud, gpu: B, provider: Q, purchase: on-demand, price: 0.7 USD/h}
"""

REDUNDANT = """
name: redundant
horizon: {months: 3, periods: once}
slices: [{name: day, share_of_hours: 0.5}, {name: night, share_of_hours: 0.5}]
gpus: {A: {}, B: {}}
workloads:
  - name: chat
    kind: service
    redundancy: n+1
    traffic: {by_slice: {day: 1.0, night: 0.4}}
    classes: [{name: short, requests_per_s: 9}, {name: long, requests_per_s: 2}]
  - {name: search, kind: service, redundancy: 2, degraded_utilisation_cap: 0.9, traffic: {mean_requests_per_s: 7}}
measurements:
  - {workload: chat, gpu: A, class: short, requests_per_s: 2, gpus_per_replica: 2}
  - {workload: chat, gpu: A, class: long, requests_per_s: 0.4, gpus_per_replica: 2}
  - {workload: chat, gpu: B, class: short, requests_per_s: 1.5, gpus_per_replica: 1}
  - {workload: chat, gpu: B, class: long, requests_per_s: 0.1, gpus_per_replica: 1}
  - {workload: search, gpu: A, requests_per_s: 3, gpus_per_replica: 4}
  - {workload: search, gpu: B, requests_per_s: 1, gpus_per_replica: 1}
options:
  catalog: false
  quotes:
    - {name: a-four, gpu: A, gpus_per_node: 4, provider: P, purchase: on-demand, price: 5 USD/h}
    - {name: a-res, gpu: A, gpus_per_node: 4, provider: P, purchase: reserved, price: 3 USD/h, term: 3 months}
    - {name: b-one, gpu: B, gpus_per_node: 1, provider: Q, purchase: on-demand, price: 0.8 USD/h, availability: 0.99}
    - {name: b-two, gpu: B, gpus_per_node: 2, provider: Q, purchase: on-demand, price: 1.5 USD/h, max_nodes: 2}
"""

EMITTING = """
name: emitting
horizon: {months: 20, periods: yearly}
finance: {discount_rate: 6 %, carbon_price: 90 USD/t}
site: {electricity: 0.1 USD/kWh, carbon: 250 g/kWh, pue: 1.25}
carbon: {regions: {"*": 600 g/kWh, us-*: 380 g/kWh, eu-*: 40 g/kWh}, pue: 1.3, host_factor: 1.7}
slices: [{name: day, share_of_hours: 0.5}, {name: night, share_of_hours: 0.5}]
gpus: {A: {tdp: 500 W}, B: {}}
workloads:
  - {name: chat, kind: service, traffic: {mean_requests_per_s: 9, by_slice: {day: 1.4, night: 0.6}, growth: 2 %/month}}
  - {name: tune, kind: batch, work: {amount: 4000, unit: samples}, start: month 3, deadline: 20 days}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 1}
  - {workload: tune, gpu: A, per_gpu_hour: 1}
  - {workload: tune, gpu: B, per_gpu_hour: 2}
options:
  catalog: false
  quotes:
    - {name: own, gpu: A, gpus_per_node: 2, purchase: owned, price: 9000 USD, power: 3 kW, max_nodes: 2}
    - {name: green, gpu: A, purchase: owned, price: 7000 USD, power: 2 kW, max_nodes: 1, carbon: 15 g/kWh}
    - {name: res, gpu: A, provider: P, region: eu-1, purchase: reserved, price: 1 USD/h, term: 12 months, max_nodes: 2}
    - {name: dirty, gpu: A, provider: P, region: us-1, purchase: on-demand, price: 1.5 USD/h}
    - {name: clean, gpu: A, provider: Q, region: eu-2, purchase: on-demand, price: 1.9 USD/h}
    - {name: b-spot, gpu: B, provider: Q, region: asia, purchase: spot, price: 0.2 USD/h, power: 0.6 kW, pue: 1.1}
  existing:
    - {name: old, gpu: A, nodes: 1, age: 20 months, paid: 5000 USD, power: 1.5 kW, retire: 35 months}
    - {name: signed, gpu: A, nodes: 1, term: 7 months, fee: 1 USD/h, provider: P, region: us-2}
costs: [{kind: tax, percent: 2 %, of: all}]
limits: {carbon: 55 t}
"""

STEPPED = """
name: stepped
horizon: {months: 14, periods: [{start_month: 0, months: 5}, {start_month: 5, months: 9}]}
finance: {discount_rate: 6 %, opex_escalation: {rent: 5 %}, carbon_price: 80 USD/t}
carbon: {regions: {"*": 300 g/kWh}}
gpus: {A: {tdp: 500 W}, B: {tdp: 300 W}, C: {tdp: 300 W}}
workloads:
  - name: chat
    kind: service
    traffic: {mean_requests_per_s: 2, by_period: [1.0, 1.5], profile: [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 4, 4, 4, 4, 4, 4,
      4, 4, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]}
  - {name: search, kind: service, traffic: {mean_requests_per_s: 3, by_period: [1.0, 0.4]}}
  - {name: tune, kind: batch, work: {amount: 300, unit: samples}, start: 2200 h, deadline: 10 days}
  - {name: quick, kind: batch, work: {amount: 31, unit: samples}, start: 9.75 h, deadline: 5 h, min_gpus: 2,
     max_gpus: 5}
  - {name: nightly, kind: batch, requests: {per_day: 9, input: 10, output: 10}, window: {daily: "22:00-04:00"}}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 1}
  - {workload: search, gpu: B, requests_per_s: 1}
  - {workload: tune, gpu: A, per_gpu_hour: 1}
  - {workload: quick, gpu: C, per_gpu_hour: 2.5}
  - {workload: nightly, gpu: C, per_gpu_hour: 20}
options:
  catalog: false
  quotes:
    - {name: day, gpu: A, gpus_per_node: 2, purchase: on-demand, price: 1 USD/h, billing_step: day, max_nodes: 9}
    - {name: exact, gpu: A, purchase: on-demand, price: 2.2 USD/h}
    - {name: week, gpu: B, purchase: on-demand, price: 1 USD/h, billing_step: week, billed_by_clock: true}
    - {name: quarter, gpu: B, purchase: reserved, price: 0.9 USD/h, term: 12 months}
    - {name: hour, gpu: C, purchase: on-demand, price: 1 USD/h, billing_step: hour, billed_by_clock: true}
    - {name: ten, gpu: C, purchase: spot, price: 0.97 USD/h, billing_step: 10 minutes, max_nodes: 1}
costs: [{kind: support, monthly: 10 USD/month, per: node}]
"""

CATALOG = load_catalog()


def solved(text, gap=0.0):
    """The plan document of a problem, as it stands in a file."""
    problem = parse_problem(text, catalog=CATALOG).problem
    plan = solve(problem, CATALOG, SolverSettings(gap=gap, time_limit_s=60))
    return json.loads(json.dumps(plan.document(), allow_nan=False))


@cache
def _kept(text):
    return solved(text)


def document(text):
    """A copy of the plan document of a problem, solved once."""
    return copy.deepcopy(_kept(text))
