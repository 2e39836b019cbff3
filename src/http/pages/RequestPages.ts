/**
 * The pages behind the mailed links of people: `/enrollments/{token}`, an invitation, and `/link-requests/{id}`, where
 * the other side of a link objects. A GET changes nothing; a button's POST acts for the person whom the console's session
 * names. No page repeats a token, and no script runs.
 */
import { Effect, Layer } from "effect"
import { Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import { AuditorReadsOnly } from "../../../schemas/problems/IdentityProblems.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { Links } from "../../../services/links/Links.ts"
import { CallerAuthentication } from "../../../services/people/CallerAuthentication.ts"
import { appPaths } from "../../../services/platform/AppPaths.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { ConsoleAuth } from "../auth/ConsoleAuth.ts"
import { Clients } from "../edge/Clients.ts"
import { actsAs } from "../edge/RequestActor.ts"
import { refusing } from "../edge/RequestOutcome.ts"
import { message, ownPage } from "./OwnPage.ts"
import { invitationEnded, invitationForm, linkEnded, objectionForm } from "./RequestForms.ts"
import { returnCookie } from "./ReturnCookie.ts"
import { isOwnForm } from "./SameOriginForm.ts"

type Response = HttpServerResponse.HttpServerResponse

const invitationCookie = (publicUrl: URL) => returnCookie(publicUrl, "bailiwick_invitation", "/enrollments")

const seeOther = (location: string) =>
  HttpServerResponse.empty({ status: 303, headers: { location, "cache-control": "no-store" } })

const unknown = refusing(
  "not_found",
  message(
    "This link is not known",
    "Open the link in the email again, and see that it is complete. You may also be signed in as another person.",
    404,
    html`<p><a class="button" href="/console/">To the console</a></p>`,
  ),
)
const foreign = refusing(
  "csrf_rejected",
  message("Nothing was changed", "This did not come from our page: open the link in your email again.", 403),
)
const readOnly = refusing(
  "console_read_only",
  message("Nothing was changed", "This installation's console may only read: ask its operator.", 403),
)
const auditing = refusing(
  "auditor_reads_only",
  message("Nothing was changed", "You are an auditor here, who reads and changes nothing.", 403),
)
const away = refusing(
  "dependency_unavailable",
  message("Please try again", "We cannot answer at the moment: open the link again in a minute.", 503),
)

const signInBody = (about: Html, to: string) =>
  html`${about}<p>You are asked after you have signed in.</p>
<p><a class="button" href="/console/sign-in?${new URLSearchParams({ return: to }).toString()}">Sign in</a></p>`

/** The signed-in person, or null. */
const visiting = Effect.gen(function* () {
  const byConsole = yield* ConsoleAuth
  const callers = yield* CallerAuthentication
  const { addressOf } = yield* Clients
  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (!byConsole.covers(request)) return null
    // `own` has judged the form already, whose Origin is "null".
    const judged = request.modify({ headers: Headers.remove(request.headers, "origin") })
    const authorization = yield* byConsole.authorization(judged)
    const origin = { userAgent: request.headers["user-agent"] ?? null, address: addressOf(request) }
    const caller = yield* callers.recognise(authorization, origin)
    yield* actsAs(caller.principal)
    if (caller.auditor && request.method !== "GET") return yield* new AuditorReadsOnly()
    return caller.personId
  }).pipe(Effect.catchTag("InvalidToken", () => Effect.succeed(null)))
})

const invitations = Effect.fnUntraced(function* (publicUrl: URL) {
  const service = yield* Enrollments
  const database = yield* Database
  const visitor = yield* visiting
  const cookie = invitationCookie(publicUrl)

  const signIn = (institution: string, token: string, status: number) => {
    const state = cookie.newState()
    const about = html`<p><bdi>${institution}</bdi> would like you to become one of its members.</p>`
    const body = signInBody(about, `/enrollments/resume?state=${state}`)
    const page = cookie.keep(ownPage({ title: "You are invited", body, status }), state, token)
    return status === 200 ? Effect.succeed(page) : refusing("invalid_token", page)
  }

  /** Shows the page of an invitation that waits, else says what became of it. */
  const look = <E, R>(
    status: number,
    show: (token: string, institution: string, expiresAt: Date | null) => Effect.Effect<Response, E, R>,
  ) =>
    Effect.gen(function* () {
      const { token = "" } = yield* HttpRouter.params
      const found = yield* Effect.orDie(service.preview(token))
      if (found === null) return yield* unknown
      if (found.state !== "invited") return yield* refusing("invalid_state", invitationEnded(found, status))
      return yield* show(token, found.institution, found.expiresAt)
    })

  const accept = (personId: PersonId, token: string, institution: string) =>
    run(service.accept({ personId, token })).pipe(
      Effect.provideService(Database, database),
      Effect.map(({ state }) => seeOther(`/enrollments/done/${state === "accepted" ? "accepted" : "waiting"}`)),
      Effect.catchTags({
        NotFound: () => unknown,
        InvalidToken: () => signIn(institution, token, 401),
        InvalidState: () => look(409, () => away),
        RequestExists: () =>
          refusing(
            "request_exists",
            message("Another person waits already", "The invitation was sent to another address than yours.", 409),
          ),
        Held: () => away,
      }),
    )

  return {
    show: look(200, (token, institution, expiresAt) =>
      Effect.flatMap(
        visitor,
        (personId) =>
          personId === null ? signIn(institution, token, 200) : Effect.succeed(invitationForm(institution, expiresAt)),
      )),
    answer: Effect.flatMap(
      visitor,
      (personId) =>
        look(
          409,
          (token, institution) =>
            personId === null ? signIn(institution, token, 401) : accept(personId, token, institution),
        ),
    ),
    resume: Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const token = cookie.take(request)
      return token === null
        ? refusing(
          "malformed_request",
          message("Open the link again", "The sign-in took too long, or began in another browser.", 400),
        )
        : Effect.succeed(cookie.clear(seeOther(`/enrollments/${token}`)))
    }),
  }
})

const objections = Effect.gen(function* () {
  const service = yield* Links
  const database = yield* Database
  const visitor = yield* visiting

  const signIn = (id: string, status: number) => {
    const about = html`<p>A signed-in person asks for an identity of yours to become one with theirs.</p>`
    const page = ownPage({ title: "A link is asked for", body: signInBody(about, `/link-requests/${id}`), status })
    return status === 200 ? Effect.succeed(page) : refusing("invalid_token", page)
  }

  const look = <E, R>(
    status: number,
    show: (personId: PersonId, linkRequestId: RequestId) => Effect.Effect<Response, E, R>,
  ) =>
    Effect.gen(function* () {
      const { link_request_id: id = "" } = yield* HttpRouter.params
      const personId = yield* visitor
      if (personId === null) return yield* signIn(id, status === 200 ? 200 : 401)
      const linkRequestId = RequestId.make(id)
      const found = yield* Effect.orDie(service.preview({ personId, linkRequestId }))
      if (found === null) return yield* unknown
      if (found.state !== "pending_review") return yield* refusing("invalid_state", linkEnded(found, status))
      return status === 200 ? objectionForm(found) : yield* show(personId, linkRequestId)
    })

  const object = (personId: PersonId, linkRequestId: RequestId) =>
    run(service.object({ personId, linkRequestId, reason: null })).pipe(
      Effect.provideService(Database, database),
      Effect.as(seeOther("/link-requests/done/objected")),
      Effect.catchTags({ NotFound: () => unknown, RoleRequired: () => unknown, InvalidState: () => away }),
    )

  return { show: look(200, () => away), answer: look(409, object) }
})

const done = (title: string, text: string) =>
  Effect.sync(() => message(title, text, 200, html`<p><a class="button" href="/console/">To the console</a></p>`))

const noSignIn = Effect.sync(() =>
  message(
    "People cannot sign in here",
    "This installation has no web console: ask the organisation that wrote to you where to answer.",
  )
)

/** Without a console there is no sign-in for people, and the links answer that. */
const withoutConsole = Layer.merge(
  HttpRouter.add("GET", appPaths.enrollment, noSignIn),
  HttpRouter.add("GET", appPaths.linkRequest, noSignIn),
)

const withConsole = (publicUrl: URL) =>
  Layer.unwrap(Effect.gen(function* () {
    const invitation = yield* invitations(publicUrl)
    const link = yield* objections
    /** Only a form of our own pages may change state. */
    const own = <E, R>(inner: Effect.Effect<Response, E, R>) =>
      Effect.flatMap(
        HttpServerRequest.HttpServerRequest,
        (request): Effect.Effect<Response, E, R> => isOwnForm(request, publicUrl) ? inner : foreign,
      )
    const answering = <R>(page: Effect.Effect<Response, { readonly _tag: string }, R>) =>
      Effect.catch(
        page,
        ({ _tag }) =>
          _tag === "ConsoleReadOnly"
            ? readOnly
            : _tag === "AuditorReadsOnly"
            ? auditing
            : _tag === "CsrfRejected"
            ? foreign
            : away,
      )
    return Layer.mergeAll(
      HttpRouter.add("GET", appPaths.enrollment, answering(invitation.show)),
      HttpRouter.add("POST", appPaths.enrollment, answering(own(invitation.answer))),
      HttpRouter.add("GET", "/enrollments/resume", answering(invitation.resume)),
      HttpRouter.add(
        "GET",
        "/enrollments/done/accepted",
        done("You are a member now", "You accepted the invitation. What you may do there stands in the console."),
      ),
      HttpRouter.add(
        "GET",
        "/enrollments/done/waiting",
        done(
          "An administrator decides",
          "The invitation was sent to another address than the one that you signed in with: an administrator is asked.",
        ),
      ),
      HttpRouter.add("GET", appPaths.linkRequest, answering(link.show)),
      HttpRouter.add("POST", appPaths.linkRequest, answering(own(link.answer))),
      HttpRouter.add(
        "GET",
        "/link-requests/done/objected",
        done("You objected", "The identities stay apart. If that was not you, change how you sign in."),
      ),
    )
  }))

/** The routes; `console`: whether people can sign in to the console. */
export const layer = ({ console, publicUrl }: { readonly console: boolean; readonly publicUrl: URL }) =>
  console ? withConsole(publicUrl) : withoutConsole
