/** Failures of a command; the person at the terminal reads one line. */
import { Schema } from "effect"

/** A failure in one line: what is wrong, and what to type. */
export class CliFault extends Schema.TaggedError<CliFault>()("CliFault", { message: Schema.String }) {}

/** The command has printed its failure already; only the exit code is left. */
export class Unsuccessful extends Schema.TaggedError<Unsuccessful>()("Unsuccessful", {}) {}
