/** `--json`, of every command that lists or shows. */
import { Flag } from "effect/cli"

export const jsonFlag = Flag.Boolean("json").pipe(
  Flag.withDescription("Prints JSON, of a list one item a line"),
  Flag.withDefault(false),
)
