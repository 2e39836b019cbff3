/**
 * Requests by a session of the web console. The session's cookie counts where there is no Authorization header: on the
 * identity API it stands for the access token of its sign-in, on the mail API for the account that signed in. The CSRF
 * rule holds for it, and with `CONSOLE=read` only safe methods; of an auditor's session as well, also for the mail account
 * that signed in with it.
 *
 * A cookie whose session has ended is refused, and no other cookie of the request is tried: the page would otherwise act
 * for another account than it shows.
 */
import { Context, Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import type { Credential } from "../../../schemas/api/CredentialsApi.ts"
import {
  ConsoleReadOnly,
  CsrfRejected,
  type DependencyUnavailable,
  InvalidCredentials,
} from "../../../schemas/problems/HttpProblems.ts"
import { InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import { type ConsoleSession, ConsoleSessions } from "../../../services/console/ConsoleSessions.ts"
import { passesCsrf } from "./Csrf.ts"
import { ownCookie } from "./OwnCookies.ts"

type Request = HttpServerRequest.HttpServerRequest

/** The console's cookie, which every path gets: the API is called with it. */
export const consoleCookie = (publicUrl: URL) => ownCookie(publicUrl, "bailiwick_console", "/")

/** Methods that change nothing. */
const safe = new Set(["GET", "HEAD"])

/** The credentials behind a console session; each effect holds no more of the request than the session's cookie. */
interface Holder {
  /** The value of an Authorization header that stands for the session. */
  readonly authorization: (
    request: Request,
  ) => Effect.Effect<string, InvalidToken | CsrfRejected | ConsoleReadOnly | DependencyUnavailable>
  /** The session's mail account; null where a person alone signed in. */
  readonly credential: (request: Request) => Effect.Effect<Credential["Service"] | null, InvalidCredentials>
}

/** The console's sessions, as the APIs take them. */
export interface ConsoleAccess extends Holder {
  /** Whether the request comes by a console session, live or not. */
  readonly covers: (request: Request) => boolean
  /** The same again while an answer lasts, which is no use of the session: its idle end stays. */
  readonly later: Holder
  /** Fails where the request would change something and the console, or its visitor, may only read. */
  readonly mayWrite: (request: Request) => Effect.Effect<void, ConsoleReadOnly>
}

const noHolder: Holder = {
  authorization: () => Effect.fail(new InvalidToken()),
  credential: () => Effect.succeed(null),
}
const none: ConsoleAccess = { ...noHolder, covers: () => false, later: noHolder, mayWrite: () => Effect.void }

const access = (publicUrl: URL, mode: "read" | "on") =>
  Effect.gen(function* () {
    const sessions = yield* ConsoleSessions
    const { name } = consoleCookie(publicUrl)

    const modeAllows = ({ method }: Request) =>
      mode === "read" && !safe.has(method) ? Effect.fail(new ConsoleReadOnly()) : Effect.void

    const mayWrite = Effect.fnUntraced(function* (request: Request) {
      yield* modeAllows(request)
      if (safe.has(request.method) || !(yield* sessions.audits(request.cookies[name] ?? ""))) return
      return yield* new ConsoleReadOnly({ detail: "The person of this session is an auditor, who changes nothing." })
    })

    const credential = Effect.fnUntraced(function* (session: ConsoleSession | null) {
      if (session === null) return yield* new InvalidCredentials()
      const { accountId, authTime } = session
      return accountId === null ? null : { via: "cookie" as const, accountId, authTime }
    })

    const holder = (find: ConsoleSessions["Service"]["find"]): Holder => ({
      authorization: Effect.fnUntraced(function* (request) {
        const session = yield* find(request.cookies[name] ?? "")
        if (session === null || session.personId === null) return yield* new InvalidToken()
        if (!passesCsrf(request, publicUrl)) return yield* new CsrfRejected()
        // The identity API refuses an auditor itself.
        yield* modeAllows(request)
        return `Bearer ${yield* sessions.accessToken(session)}`
      }),
      credential: ({ cookies }) => Effect.flatMap(find(cookies[name] ?? ""), credential),
    })

    return {
      ...holder(sessions.find),
      covers: ({ cookies, headers }) => headers["authorization"] === undefined && cookies[name] !== undefined,
      later: holder(sessions.watch),
      mayWrite,
    } satisfies ConsoleAccess
  })

/** Without its layer no console session is accepted. */
export class ConsoleAuth
  extends Context.Reference<ConsoleAccess>("bailiwick/http/auth/ConsoleAuth", { defaultValue: () => none }) {
  /** `publicUrl` is the origin under which browsers reach this program. */
  static readonly layer = (publicUrl: URL, mode: "read" | "on") => Layer.effect(ConsoleAuth, access(publicUrl, mode))
}
