/** The operator who types a command, for the audit: `--as NAME`, or the user of the operating system; and the reason. */
import { Option } from "effect"
import { Flag } from "effect/cli"
import { userInfo } from "node:os"

const osUser = (): string => {
  try {
    return userInfo().username
  } catch {
    // A container may run as a user id without an entry in its passwd.
    return String(process.getuid?.() ?? "")
  }
}

export const asFlag = Flag.String("as").pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription("Who does this, for the audit (default: the user of this system)"),
  Flag.filter((name) => /^[\p{L}\p{N}._@+-]{1,128}$/u.test(name), () => "a name of letters, digits and . _ @ + -"),
  Flag.optional,
)

export const reasonFlag = Flag.String("reason").pipe(
  Flag.withDescription("Why, for the audit: 8 to 500 characters"),
  Flag.filter((text) => [...text].length >= 8 && [...text].length <= 500, () => "a reason of 8 to 500 characters"),
)

/** The actor as records have it. */
export const operatorNamed = (given: Option.Option<string>): string => {
  const name = Option.getOrElse(given, osUser).replace(/[^\p{L}\p{N}._@+-]/gu, "_").slice(0, 128)
  return name === "" ? "operator" : `operator:${name}`
}
