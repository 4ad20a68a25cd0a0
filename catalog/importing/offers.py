"""What an import works with: its settings, the rows it keeps, what it drops and what it remarks on."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date

from catalog.importing.basis import PER_NODE_HOUR, Basis

LOWEST_PRICE, HIGHEST_PRICE = 1e-6, 1e6
"""USD per hour: what is beyond them is no price of a node or GPU (another unit, a sum, a test entry)."""

DROPPED = {
    "no-gpu": "row without GPU (CPU only)",
    "no-price": "price missing, 0 or negative: unknown, not free",
    "price-out-of-range": "price below 0.000001 or above 1,000,000 USD per hour: no price of a node",
    "placeholder": "figure that stands for a price that is not known",
    "no-spot": "spot price 0 or negative: no spot market",
    "spot-is-on-demand": "spot price equals the on-demand price: no spot market",
    "auction-floor": "spot price is the floor of an auction, not what is paid",
    "commitment-price": "on-demand price below spot or below half of other regions: the price of a commitment",
    "unreadable": "a cell cannot be read",
    "ragged": "more or fewer cells than the header has columns",
    "no-count": "GPU count missing or below 1",
    "fraction-of-gpu": "a fraction of a GPU",
    "count-mismatch": "two GPU counts that disagree",
    "count-over-node": "more GPUs than a node of this GPU holds",
    "tpu": "TPU of a generation that the catalog does not have",
    "tpu-slice": "TPU slice over several hosts: rented as one, so no node of the catalog",
    "unknown-gpu": "GPU that the catalog does not know",
    "ambiguous-gpu": "GPU name that could mean several, and nothing in the row settles it",
    "vendor-mismatch": "vendor that does not make this GPU",
    "memory-mismatch": "memory that is not the size this GPU is sold with",
    "host-without-gpu": "host machine whose GPU price is not in the file",
    "gpu-without-host": "GPU price without a host machine to put it in",
    "price-not-scaled": "same price for more GPUs: the price of one GPU, or wrong (see --price-per)",
    "duplicate": "same offer at the same price once more",
    "conflict": "same offer at another price; the dearer one is kept",
    "zone": "same offer dearer in another zone; the cheapest zone is kept",
    "currency": "price in another currency than USD",
}
"""Why a row, or the spot price of a row, is not imported."""

REMARKS = {
    "spot-assumed": "spot price is half of on-demand: an assumption of gpuhunt for this provider",
    "spot-dearer": "spot price above on-demand",
    "memory-differs": "memory differs from the size this GPU is sold with",
    "reservation": "price of a month or year: not to be had by the hour, hence a reservation of that time",
    "disk-included": "price holds that of a disk, which gpuhunt adds for this provider",
    "ram-of-gpus": "host memory equals that of the GPUs: taken as unknown",
    "summed": "price summed from host machine and GPUs",
    "scaled": "GPU price of one GPU times the count",
}
"""What is imported but worth knowing."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Whose prices they are, of what day (None: unknown), and what they are for where the file does not say."""

    provider: str
    priced_on: date | None
    label: str
    """Name of the file in messages and sources."""
    basis: Basis = PER_NODE_HOUR
    columns: tuple[tuple[str, str], ...] = ()
    """For the form `csv`: pairs of our column and the file's."""


@dataclass(slots=True)
class PriceRow:
    """One offer on its way in; the price is USD per node and hour."""

    line: int
    region: str
    zone: str
    instance_type: str
    gpu_id: str
    gpus_per_node: int
    purchase_option: str
    price: float
    vcpus: float | None = None
    ram_gib: float | None = None
    notes: str = ""
    flags: str = ""
    extra: dict[str, str] | None = None
    """Other cells of the form `csv`, by column of the catalog."""

    def with_price(self, purchase_option: str, price: float) -> "PriceRow":
        """The same node had another way."""
        return PriceRow(  # dataclasses.replace costs a fifth of an import
            self.line, self.region, self.zone, self.instance_type, self.gpu_id, self.gpus_per_node, purchase_option,
            price, self.vcpus, self.ram_gib, self.notes, self.flags, self.extra,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Note:
    """Something to tell about a line: a code of DROPPED or REMARKS, and the particulars."""

    line: int
    code: str
    detail: str


@dataclass(slots=True)
class ImportRun:
    """What came of an import."""

    settings: Settings
    rows: list[PriceRow] = field(default_factory=list)
    dropped: list[Note] = field(default_factory=list)
    remarks: list[Note] = field(default_factory=list)
    lines_read: int = 0
    unread_columns: list[str] = field(default_factory=list)
    """Columns of the form `csv` that stand for none of ours."""

    def drop(self, line: int, code: str, detail: str) -> None:
        """Leave something out, saying why."""
        self.dropped.append(Note(line, code, detail))

    def remark(self, line: int, code: str, detail: str) -> None:
        """Keep something, saying what is odd about it."""
        self.remarks.append(Note(line, code, detail))

    def counts(self) -> dict[str, int]:
        """How many were dropped for each reason, most first."""
        return dict(Counter(note.code for note in self.dropped).most_common())

    def remark_counts(self) -> dict[str, int]:
        """How many remarks of each kind there are."""
        return dict(Counter(note.code for note in self.remarks).most_common())
