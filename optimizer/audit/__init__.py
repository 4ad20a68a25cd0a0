"""The audit: a second implementation of the conventions that shares nothing with the model, the solver or `solve`."""

from optimizer.audit.report import AuditFinding, AuditReport
from optimizer.audit.run import audit_plan

__all__ = ["AuditFinding", "AuditReport", "audit_plan"]
