/** The fences of a fenced write (the conditions under which it is written) and the checks of its caller. */
import type { Effect } from "effect"
import type { Statement } from "effect/sql"

/** Rows that must be as they were loaded. */
export interface Fence {
  /**
   * A statement that returns one row for each unchanged row, under `earlier`: the condition that all earlier fences
   * hold.
   */
  readonly statement: (earlier: Statement.Fragment) => Statement.Fragment
  /** How many rows the statement must return. */
  readonly rows: number
}

/** A check of the caller that the command's load makes in the same statement. */
export interface Admission {
  /** A SELECT of at most one row, with column names that no other part of the load has. */
  readonly statement: Statement.Fragment
  /** Checks the row's columns, which are null where there was no row. `fenced` fails with the error of this. */
  readonly judge: (row: Readonly<Record<string, unknown>>) => Effect.Effect<void, NotAdmitted>
}

/** The command was not decided; `answer` is for the code that named the admission. */
export class NotAdmitted {
  readonly _tag = "NotAdmitted"
  readonly answer: unknown
  constructor(answer: unknown) {
    this.answer = answer
  }
}
