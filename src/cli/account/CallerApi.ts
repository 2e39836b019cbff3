/**
 * The API, as commands of an account's or an institution's user call it: by @bailiwick/client, with the caller's own
 * credential. Such a command needs no access to the installation's servers.
 *
 * BAILIWICK_KEY is an API key or an access token; it has no flag, since other users see a command's arguments.
 * BAILIWICK_URL is the installation's origin, by default that of the instance that runs with BAILIWICK_HOME.
 */
import { Config, Effect, Option, Redacted } from "effect"
import { type Client, client, Problem } from "../../../sdk/client/Client.ts"
import { CliFault } from "../CliFault.ts"
import { instance } from "../Instance.ts"
import { reasonOf } from "../Reason.ts"
import { cliCommand, startCommand } from "../../../services/platform/CommandSpelling.ts"

const keyOf = Config.option(Config.Redacted("BAILIWICK_KEY"))
const urlOf = Config.option(Config.String("BAILIWICK_URL"))

/** The origin of the installation. */
const origin = Effect.gen(function* () {
  const url = Option.getOrUndefined(yield* urlOf)
  if (url !== undefined) {
    if (/^https?:$/.test(URL.parse(url)?.protocol ?? "")) return url
    return yield* new CliFault({
      message: "BAILIWICK_URL: is no http or https URL, for example BAILIWICK_URL=https://bailiwick.example.com",
    })
  }
  const { config, runtime } = yield* instance
  return yield* Option.match(runtime, {
    onSome: ({ http_url }) => Effect.succeed(http_url),
    onNone: () =>
      new CliFault({
        message:
          `set BAILIWICK_URL to the installation's address: no instance runs with BAILIWICK_HOME=${config.home} ` +
          `("${startCommand}" starts one)`,
      }),
  })
})

/** A failure in lines: the code, the sentence, and each fault of a request that did not decode. */
const linesOf = (problem: Problem): string => {
  const detail = problem.members["detail"]
  const faults = Array.isArray(detail)
    ? detail.map(({ loc, msg }: { loc: ReadonlyArray<unknown>; msg: string }) => `  ${loc.slice(1).join(".")}: ${msg}`)
    : []
  const id = problem.members["request_id"]
  const request = typeof id === "string" ? ` (request ${id})` : ""
  const says = faults.length === 0 ? problem.message : "the request is not valid"
  return [`${problem.code}: ${says}${request}`, ...faults].join("\n")
}

/** The same as a failure of the command. */
export const faultOf = (error: unknown): CliFault =>
  new CliFault({ message: error instanceof Problem ? linesOf(error) : reasonOf(error) })

/** The client of this command's caller, and the installation's origin. */
export const api = Effect.gen(function* () {
  const key = yield* keyOf
  if (Option.isNone(key) || Redacted.value(key.value) === "") {
    return yield* new CliFault({
      message: "set BAILIWICK_KEY to an API key, or to an access token of yours: the demo's are in demo.json and " +
        `by "${cliCommand("token --person ID")}"`,
    })
  }
  return client({ url: yield* origin, token: Redacted.value(key.value) })
})

/** Makes calls; a problem is a failure of the command, and Ctrl-C ends the call. */
export const called = <Answer>(calls: (api: Client, signal: AbortSignal) => Promise<Answer>) =>
  Effect.flatMap(api, (one) => Effect.tryPromise({ try: (signal) => calls(one, signal), catch: faultOf }))
