/** An account, its workspaces and its domains, as the API shows them to the account itself. */
import { Schema } from "effect"
import { AccountId, DomainId, TransferId, WorkspaceId } from "../BrandedIds.ts"
import { Id, Timestamp } from "../Wire.ts"
import { Plan, WorkspaceRole } from "./MailAccount.ts"

const Quota = Schema.Struct({
  used: Schema.Int,
  limit: Schema.Int.annotate({ description: "-1: unlimited" }),
})

export const AccountView = Schema.Struct({
  id: AccountId,
  email: Schema.String,
  name: Schema.String,
  plan: Plan,
  platform_admin: Schema.Boolean,
  api_keys: Quota.annotate({ description: "Active keys, and the plan's limit" }),
  webhooks: Quota.annotate({ description: "Webhooks, paused ones included" }),
  domains: Quota.annotate({ description: "Domains that it owns, without those on their way to it" }),
}).annotate({ identifier: "Account" })
export type AccountView = typeof AccountView.Type

export const WorkspaceView = Schema.Struct({
  id: WorkspaceId,
  name: Schema.String,
  role: WorkspaceRole.annotate({ description: "The caller's role; of several the one that may do more" }),
  created_at: Timestamp,
}).annotate({ identifier: "Workspace" })
export type WorkspaceView = typeof WorkspaceView.Type

/** The `after_id` of the next page; null on the last page. */
export const nextAfterId = Schema.NullOr(Id).annotate({
  description: "The `after_id` of the next page; null on the last page",
})

export const WorkspacePage = Schema.Struct({ items: Schema.Array(WorkspaceView), next_after_id: nextAfterId })
  .annotate({ identifier: "WorkspacePage" })
export type WorkspacePage = typeof WorkspacePage.Type

export const DomainView = Schema.Struct({
  id: DomainId,
  name: Schema.String,
  account_id: AccountId.annotate({ description: "The account that owns the domain" }),
  account_email: Schema.NullOr(Schema.String).annotate({
    description: "Its address, where a platform administrator looks for domains by name; else null",
  }),
  workspace_id: WorkspaceId,
  workspace_role: Schema.NullOr(WorkspaceRole).annotate({
    description: "The caller's role in its workspace; null for an owner outside it",
  }),
  may_transfer: Schema.Boolean.annotate({
    description: "Whether the caller may offer it, and take an offer back",
  }),
  verified_at: Schema.NullOr(Timestamp),
  dkim_selector: Schema.String.annotate({ description: "Of the key that signs the domain's mail" }),
  transfer: Schema.NullOr(Schema.Struct({ id: TransferId, status: Schema.Literals(["pending", "accepted"]) })).annotate(
    {
      description: "Its transfer that is pending or accepted",
    },
  ),
}).annotate({ identifier: "Domain" })
export type DomainView = typeof DomainView.Type

export const DomainPage = Schema.Struct({ items: Schema.Array(DomainView), next_after_id: nextAfterId })
  .annotate({ identifier: "DomainPage" })
export type DomainPage = typeof DomainPage.Type
