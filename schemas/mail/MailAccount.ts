/** Accounts of the mail platform, as the directory describes them (docs/api/mail.md). */
import { Schema } from "effect"

export const Plan = Schema.Literals(["free", "starter", "pro", "business"]).annotate({ identifier: "Plan" })
export type Plan = typeof Plan.Type

/** Active API keys that an account may have. */
export const apiKeyLimits: Readonly<Record<Plan, number>> = { free: 2, starter: 5, pro: 15, business: 50 }

/** Domains that an account may own where the directory names no limit of its own; -1 is unlimited. */
export const domainLimits: Readonly<Record<Plan, number>> = { free: 1, starter: 5, pro: 25, business: -1 }

export const AccountStatus = Schema.Literals(["active", "disabled"])
export type AccountStatus = typeof AccountStatus.Type

export const WorkspaceRole = Schema.Literals(["owner", "admin", "member"])
export type WorkspaceRole = typeof WorkspaceRole.Type
