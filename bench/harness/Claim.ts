/** A claim: a measurement in rounds, and its finding. */
import type { Effect, Scope } from "effect"
import type { Table } from "./Figures.ts"
import type { BenchError } from "./Child.ts"
import type { Servers } from "./Servers.ts"

export interface Finding {
  readonly tables: ReadonlyArray<Table>
  /** How it was measured, a sentence each. */
  readonly notes: ReadonlyArray<string>
  /** Every round's figures, for other statistics. */
  readonly raw: unknown
}

export interface Run {
  readonly servers: Servers
  /** Five, or fewer with `--quick`. */
  readonly rounds: number
  readonly quick: boolean
  /** The number of rows that was asked for (`--rows`), for claims that `takes` says it of; null: their own. */
  readonly rows: number | null
  /** The program leaves CPU profiles in bench/results/tmp. */
  readonly profile: boolean
  readonly tell: (text: string) => Effect.Effect<void>
}

export interface Claim {
  readonly name: string
  readonly title: string
  /** About how long it takes on two idle cores, and what its size depends on; `--help` prints it. */
  readonly takes?: string
  /** The claim is measured once, also where others are measured in rounds. */
  readonly once?: true
  readonly measure: (run: Run) => Effect.Effect<Finding, BenchError, Scope.Scope>
}
