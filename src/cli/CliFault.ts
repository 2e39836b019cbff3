/** How a command ends other than well; what the person at the terminal reads is one line. */
import { Schema } from "effect"

/** One line: what is wrong, and what to type. */
export class CliFault extends Schema.TaggedError<CliFault>()("CliFault", { message: Schema.String }) {}

/** The command has said already what went wrong; only the exit code is left. */
export class Unsuccessful extends Schema.TaggedError<Unsuccessful>()("Unsuccessful", {}) {}
