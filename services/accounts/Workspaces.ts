/** The data of a person's own account for pages: the workspaces to choose from, and the mail address. */
import { Context, Effect, Layer } from "effect"
import type { AccountId, WorkspaceId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"

export interface Workspace {
  readonly id: WorkspaceId
  readonly name: string
}

export class Workspaces extends Context.Service<Workspaces, {
  /** Oldest first: the first is the one that is meant where none is named. */
  readonly of: (accountId: AccountId) => Effect.Effect<ReadonlyArray<Workspace>>
  /** The account's own address; null where the directory has none. */
  readonly addressOf: (accountId: AccountId) => Effect.Effect<string | null>
}>()("bailiwick/services/accounts/Workspaces") {
  static readonly layer = Layer.effect(
    Workspaces,
    Effect.map(Database, ({ reads }) =>
      Workspaces.of({
        of: Effect.fn("Workspaces.of")((accountId: AccountId) =>
          reads<Workspace>`
            select id::text as id, name from workspaces
            where not removed and id in (
              select workspace_id from workspace_memberships where account_id = ${accountId}::uuid and not removed)
            order by created_at, id`.pipe(Effect.orDie)
        ),
        addressOf: Effect.fn("Workspaces.addressOf")((accountId: AccountId) =>
          reads<{ email: string | null }>`select email from accounts where id = ${accountId}::uuid`.pipe(
            Effect.map(([row]) => row?.email ?? null),
            Effect.orDie,
          )
        ),
      })),
  )
}
