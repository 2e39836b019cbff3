/** An area: tables that grow together, and the statements whose cost must not grow with them. */
import { type Effect, Layer, Redacted, type Scope } from "effect"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import type { Database } from "../../../services/platform/database/Database.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import type { Run } from "../../harness/Claim.ts"
import { keysFileOf } from "../../harness/Product.ts"
import type { Fixture } from "../../harness/Servers.ts"

export interface Statement {
  readonly name: string
  /** Runs it through the program's own service, for the nth time. */
  readonly run: (n: number) => Effect.Effect<unknown, unknown>
  /** Runs before each call and is not counted: makes the rows that the statement finds. */
  readonly prepare?: Effect.Effect<unknown, unknown>
  /** Descents into B-trees of the growing tables, each of which may take one block more in a higher tree. */
  readonly descents: number
}

export interface Area {
  readonly name: string
  /** Writes `rows` rows into each growing table, as the program would, on a migrated database. */
  readonly fill: (rows: number, run: Run) => Effect.Effect<unknown, unknown, Database>
  readonly statements: (
    fixture: Fixture,
    run: Run,
    rows: number,
  ) => Effect.Effect<ReadonlyArray<Statement>, unknown, Database | Scope.Scope>
}

/** The platform services of the program, with the broker of this fixture. */
export const platform = ({ natsUrl }: Fixture, { servers }: Run) =>
  Layer.merge(Outbox.layer, Vault.layer({ file: keysFileOf(servers) })).pipe(
    Layer.provideMerge(WakeUps.layer),
    Layer.provideMerge(Bus.layer({ url: Redacted.make(natsUrl) })),
  )

/** SQL of a UUIDv7 of the milliseconds `ms`, different for each `n`. */
export const idOf = (ms: string, n: string): string =>
  `(lpad(to_hex(${ms}), 12, '0') || '7' || lpad(to_hex(${n} % 4096), 3, '0') || '8' || lpad(to_hex(${n}), 15, '0'))::uuid`

/** SQL of a UUID made of `n`. */
export const numbered = (n: string): string => `lpad(to_hex(${n}), 32, '0')::uuid`

/** The same UUID as text. */
export const uuidOf = (n: number): string => {
  const digits = n.toString(16).padStart(32, "0")
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    "-",
  )
}
