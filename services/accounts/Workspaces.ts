/** The workspaces that an account belongs to, for whoever lets a person choose among them. */
import { Context, Effect, Layer } from "effect"
import { Database } from "../platform/Database.ts"

export interface Workspace {
  readonly id: string
  readonly name: string
}

export class Workspaces extends Context.Service<Workspaces, {
  /** Oldest first: the first is the one that is meant where none is named. */
  readonly of: (accountId: string) => Effect.Effect<ReadonlyArray<Workspace>>
}>()("bailiwick/services/accounts/Workspaces") {
  static readonly layer = Layer.effect(
    Workspaces,
    Effect.map(Database, ({ reads }) =>
      Workspaces.of({
        of: Effect.fn("Workspaces.of")((accountId: string) =>
          reads<Workspace>`
            select id::text as id, name from workspaces
            where not removed and id in (
              select workspace_id from workspace_memberships where account_id = ${accountId}::uuid and not removed)
            order by created_at, id`.pipe(Effect.orDie)
        ),
      })),
  )
}
