/** Tables that grow together, and the statements that must not grow with them. */
import { type Effect, Layer, Redacted, type Scope } from "effect"
import { Bells } from "../../../services/platform/messaging/Bells.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import type { Database } from "../../../services/platform/database/Database.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import type { Run } from "../../harness/Claim.ts"
import { keysFileOf } from "../../harness/Product.ts"
import type { World } from "../../harness/Servers.ts"

export interface Statement {
  readonly name: string
  /** Runs it through the program's own service, for the nth time. */
  readonly run: (n: number) => Effect.Effect<unknown, unknown>
  /** Runs before each turn and is not counted: makes what the statement is to find. */
  readonly prepare?: Effect.Effect<unknown, unknown>
  /** Descents into B-trees of the tables that grow, each of which may take one block more in a tree that is higher. */
  readonly descents: number
}

export interface Area {
  readonly name: string
  /** Writes `rows` rows into each table that grows, as the program would have, on a migrated database. */
  readonly fill: (rows: number, run: Run) => Effect.Effect<unknown, unknown, Database>
  readonly statements: (
    world: World,
    run: Run,
    rows: number,
  ) => Effect.Effect<ReadonlyArray<Statement>, unknown, Database | Scope.Scope>
}

/** What the program's services stand on, with the broker of this world. */
export const platform = ({ natsUrl }: World, { servers }: Run) =>
  Layer.merge(Outbox.layer, Vault.layer({ file: keysFileOf(servers) })).pipe(
    Layer.provideMerge(Bells.layer),
    Layer.provideMerge(Bus.layer({ url: Redacted.make(natsUrl) })),
  )

/** SQL of a UUIDv7 of the milliseconds `ms` that no other `n` has. */
export const idOf = (ms: string, n: string): string =>
  `(lpad(to_hex(${ms}), 12, '0') || '7' || lpad(to_hex(${n} % 4096), 3, '0') || '8' || lpad(to_hex(${n}), 15, '0'))::uuid`

/** SQL of a UUID that belongs to `n`. */
export const numbered = (n: string): string => `lpad(to_hex(${n}), 32, '0')::uuid`

/** The same UUID, as the program names it. */
export const uuidOf = (n: number): string => {
  const digits = n.toString(16).padStart(32, "0")
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    "-",
  )
}
