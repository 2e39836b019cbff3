/**
 * Custom headers and basic authentication of a webhook, from files or standard input: other users of a machine see a
 * command's arguments, and a shell keeps them. A fault names the line and never repeats it.
 */
import { Effect, Option, Stream } from "effect"
import { Flag } from "effect/cli"
import type { BasicAuth, CustomHeader } from "../../../schemas/mail/WebhookHeaders.ts"
import { CliFault } from "../CliFault.ts"
import { linesOf } from "../ReadLines.ts"

export const secretFlags = {
  headersFile: Flag.String("headers-file").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(
      'Custom headers, a line "Name: value" each; - reads standard input; an empty file removes them',
    ),
    Flag.optional,
  ),
  basicAuthFile: Flag.String("basic-auth-file").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(
      'Basic authentication, one line "user:password"; - reads standard input; an empty file removes it',
    ),
    Flag.optional,
  ),
}

/** More lines than the API takes headers. */
const maxLines = 100

/** The lines that are not blank, by their numbers, and each cut at its first colon. */
const pairsOf = Effect.fnUntraced(function* (file: string, form: string) {
  const lines = yield* Stream.runCollect(Stream.take(linesOf(file), maxLines + 1))
  if (lines.length > maxLines) return yield* new CliFault({ message: `${file}: has more than ${maxLines} lines` })
  return yield* Effect.forEach(
    [...lines.entries()].filter(([, line]) => line.trim() !== ""),
    ([n, line]) => {
      const colon = line.indexOf(":")
      return colon < 0
        ? new CliFault({ message: `${file}: line ${n + 1} is not "${form}"` })
        : Effect.succeed([line.slice(0, colon), line.slice(colon + 1)] as const)
    },
  )
})

const headersOf = Effect.fnUntraced(function* (file: string) {
  const pairs = yield* pairsOf(file, "Name: value")
  return pairs.map(([name, value]): CustomHeader => ({ name: name.trim(), value: value.trim() }))
})

const basicAuthOf = Effect.fnUntraced(function* (file: string) {
  const pairs = yield* pairsOf(file, "user:password")
  if (pairs.length > 1) return yield* new CliFault({ message: `${file}: has more than one line` })
  const [username, password] = pairs[0] ?? ["", ""]
  return { username, password } satisfies BasicAuth
})

/** The members of a request that the given files make. */
export const secretSettings = Effect.fnUntraced(function* (
  { basicAuthFile, headersFile }: {
    readonly headersFile: Option.Option<string>
    readonly basicAuthFile: Option.Option<string>
  },
) {
  const files = [...Option.toArray(headersFile), ...Option.toArray(basicAuthFile)]
  if (files.every((file) => file === "-") && files.length > 1) {
    return yield* new CliFault({ message: "standard input is one file: only one flag can be -" })
  }
  return {
    ...(Option.isSome(headersFile) ? { headers: yield* headersOf(headersFile.value) } : {}),
    ...(Option.isSome(basicAuthFile) ? { basic_auth: yield* basicAuthOf(basicAuthFile.value) } : {}),
  }
})
