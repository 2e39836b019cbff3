/**
 * The pages behind mailed links, `/transfers/accept/{token}` and `/transfers/stop/{token}`. Scanners and previews
 * follow links in mails, so a GET changes no state and shows buttons; a button's POST makes the change. Pages of an
 * outcome have no token in their path. The pages run no scripts, and no part of a path leaves this site.
 */
import { Clock, Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type AccountId, CommandId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { sessionCookie } from "../../../schemas/api/CredentialsApi.ts"
import type { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import { DependencyUnavailable } from "../../../schemas/problems/HttpProblems.ts"
import type { Held } from "../../../schemas/problems/IdentityProblems.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Workspaces } from "../../../services/accounts/Workspaces.ts"
import { html } from "../../../services/platform/mail/Html.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import type { DkimRecord } from "../../../services/transfers/DkimKeys.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { domainMailbox } from "../../actors/DomainMailbox.ts"
import { readText } from "../edge/Body.ts"
import { actsAs } from "../edge/RequestActor.ts"
import { refusing } from "../edge/RequestOutcome.ts"
import { acceptForm, offerFacts, recordFacts, stopForm } from "./Forms.ts"
import { isOwnForm } from "./SameOriginForm.ts"
import { masked, saying, span, stylePath } from "./TransferPage.ts"
import { askToSignIn, resume, type SignInOptions } from "./SignIn.ts"
import { style } from "./TransferStyle.ts"
import { ended, refused } from "./TransferCopy.ts"

export interface TransferPagesOptions extends SignInOptions {
  readonly safetyWindowMillis: number
}

type Link = "accept" | "stop"

interface Seen {
  readonly token: string
  readonly transfer: DomainTransfer
  readonly record: DkimRecord | null
}

const unknown = refusing(
  "not_found",
  saying(
    "This link is not known",
    "No transfer has this link: open the link in the email again, and see that it is complete.",
    404,
  ),
)
const foreign = refusing(
  "csrf_rejected",
  saying("Nothing was changed", "This did not come from our page: open the link in your email again.", 403),
)
const away = refusing(
  "dependency_unavailable",
  saying("Please try again", "We cannot answer at the moment: open the link again in a minute.", 503),
)
const held = ({ retry_after }: Held) =>
  refusing(
    "held",
    HttpServerResponse.setHeader(
      saying("Please try again", "Nothing can be accepted for the moment: open the link again in a few minutes.", 503),
      "retry-after",
      String(retry_after),
    ),
  )

const done = HttpServerResponse.empty({ status: 303, headers: { location: "/transfers/done/accepted" } })
const declined = HttpServerResponse.empty({ status: 303, headers: { location: "/transfers/done/declined" } })
const stopped = HttpServerResponse.empty({ status: 303, headers: { location: "/transfers/done/stopped" } })

const make = Effect.fnUntraced(function* (options: TransferPagesOptions) {
  const principals = yield* Principals
  const service = yield* Transfers
  const workspaces = yield* Workspaces
  const ids = yield* Ids
  const mailbox = yield* domainMailbox

  /** The account that is signed in by cookie, or null. */
  const visitor = Effect.gen(function* () {
    const { cookies } = yield* HttpServerRequest.HttpServerRequest
    const credential = yield* principals.present({ authorization: undefined, cookie: cookies[sessionCookie] })
    const { accountId } = yield* principals.authenticate(credential)
    yield* actsAs(`account:${accountId}`)
    return accountId
  }).pipe(Effect.catchTag("InvalidCredentials", () => Effect.succeed(null)))

  /**
   * Shows the page of a link that still works, else a page with `status` that says why the link does not work any more.
   */
  const look = <E, R>(
    link: Link,
    status: number,
    show: (seen: Seen) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  ) =>
    Effect.gen(function* () {
      const { token = "" } = yield* HttpRouter.params
      const preview = yield* service.preview(link, token)
      if (preview === null) return yield* unknown
      const words = ended(link, preview)
      return yield* words === null
        ? show({ token, transfer: preview.transfer, record: preview.record })
        : refusing(words.code, saying(words.title, words.text, status, recordFacts(preview.record)))
    })

  const signIn = ({ token, transfer }: Seen, status: number) =>
    askToSignIn(options, {
      title: `Accept ${transfer.domain_name}?`,
      about: offerFacts(transfer, options.safetyWindowMillis),
      status,
      code: "invalid_credentials",
      meant: masked(transfer.target_email),
      token,
    })

  const wrongAccount = Effect.fnUntraced(function* (accountId: AccountId, { token, transfer }: Seen, status: number) {
    const [signedIn, meant] = [masked(yield* workspaces.addressOf(accountId)), masked(transfer.target_email)]
    return yield* askToSignIn(options, {
      title: "This offer is for another account",
      about: html`<p>You are signed in as <bdi>${signedIn}</bdi>; the offer was sent to <bdi>${meant}</bdi>.</p>`,
      status,
      code: "wrong_recipient",
      meant,
      token,
    })
  })

  const showAccept = look(
    "accept",
    200,
    Effect.fnUntraced(function* (seen) {
      const accountId = yield* visitor
      if (accountId === null) return yield* signIn(seen, 200)
      if (accountId !== seen.transfer.target_user_id) return yield* wrongAccount(accountId, seen, 200)
      const own = yield* workspaces.of(accountId)
      const { message } = yield* service.eligibility(accountId)
      return acceptForm({
        transfer: seen.transfer,
        address: yield* workspaces.addressOf(accountId),
        workspaces: own,
        obstacle: own.length === 0 ? "You belong to no workspace that could take it." : message,
        safetyWindowMillis: options.safetyWindowMillis,
        now: yield* Clock.currentTimeMillis,
      })
    }),
  )

  const said = (code: string) => {
    const { text, title } = refused[code]!
    return refusing(code, saying(title, text, 403))
  }
  const overtaken = (link: Link) => look(link, 409, () => away)

  const declineAs = Effect.fnUntraced(function* (accountId: AccountId, seen: Seen) {
    const command = { commandId: CommandId.make(yield* ids.next), accountId, transferId: seen.transfer.id }
    return yield* mailbox.decline(seen.transfer.domain_id, command).pipe(
      Effect.as(declined),
      Effect.catchTags({
        InvalidCredentials: () => signIn(seen, 401),
        WrongRecipient: () => wrongAccount(accountId, seen, 403),
        TransferNotFound: () => wrongAccount(accountId, seen, 403),
        NotPending: () => overtaken("accept"),
      }),
    )
  })

  const acceptAs = Effect.fnUntraced(function* (accountId: AccountId, seen: Seen, fields: URLSearchParams) {
    const workspace = fields.get("workspace")
    const command = {
      commandId: CommandId.make(yield* ids.next),
      accountId,
      transferId: seen.transfer.id,
      byToken: true,
      orgId: workspace === null ? null : WorkspaceId.make(workspace),
      rotateDkim: fields.has("rotate_dkim"),
    }
    return yield* mailbox.accept(seen.transfer.domain_id, command).pipe(
      Effect.as(done),
      Effect.catchTags({
        InvalidCredentials: () => signIn(seen, 401),
        WrongRecipient: () => wrongAccount(accountId, seen, 403),
        OrgAccessLost: () => said("org_access_lost"),
        DomainLimit: () => said("domain_limit"),
        Held: held,
        // Another request, or the clock, changed the transfer first: its state gives the reason.
        TransferNotFound: () => overtaken("accept"),
        TransferExpired: () => overtaken("accept"),
        NotPending: () => overtaken("accept"),
      }),
    )
  })

  const answerAs = Effect.fnUntraced(function* (accountId: AccountId, seen: Seen) {
    const fields = new URLSearchParams(yield* readText(yield* HttpServerRequest.HttpServerRequest))
    return yield* fields.get("answer") === "decline" ? declineAs(accountId, seen) : acceptAs(accountId, seen, fields)
  })

  const answer = Effect.gen(function* () {
    // Recognise the visitor before any refusal, so that the audit names the account.
    const accountId = yield* visitor
    return yield* look(
      "accept",
      409,
      (seen) => accountId === null ? signIn(seen, 401) : answerAs(accountId, seen),
    )
  })

  const stop = look(
    "stop",
    409,
    Effect.fnUntraced(function* ({ transfer }) {
      const command = { commandId: CommandId.make(yield* ids.next), transferId: transfer.id }
      return yield* mailbox.stop(transfer.domain_id, command).pipe(
        Effect.as(stopped),
        Effect.catchTags({
          TransferNotFound: () => overtaken("stop"),
          NotStoppable: () => overtaken("stop"),
        }),
      )
    }),
  )

  /** Only a form of our own pages may change state, with a cookie or without. */
  const own = <E, R>(inner: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.flatMap(
      HttpServerRequest.HttpServerRequest,
      (request): typeof inner => isOwnForm(request, options.publicUrl) ? inner : foreign,
    )

  return {
    answer: own(answer),
    showAccept,
    stop: own(stop),
    showStop: look("stop", 200, ({ record, transfer }) => Effect.succeed(stopForm(transfer, record))),
  }
})

const accepted = (window: string) =>
  saying(
    "You accepted the domain",
    `It moves to your account ${window} from now, unless its owner stops the transfer before; we write to you either way. ` +
      "If you asked for a new DKIM key, its DNS record is in the email that we send you now, and behind the offer's link.",
  )

const wasDeclined = saying("You declined the domain", "It stays with its owner, who is told that you declined it.")

const wasStopped = saying(
  "The transfer is stopped",
  "The domain stays with its owner, and all concerned are told by email.",
)

/** Routes of the mailed links; mount them only where transfers are enabled. */
export const layer = (options: TransferPagesOptions) =>
  Layer.unwrap(Effect.gen(function* () {
    const pages = yield* make(options)
    const answering = <E, R>(page: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
      Effect.catchIf(page, (error) => error instanceof DependencyUnavailable, () => away)
    const sheet = HttpServerResponse.text(style, {
      contentType: "text/css; charset=utf-8",
      headers: { "cache-control": "public, max-age=3600" },
    })
    return Layer.mergeAll(
      HttpRouter.add("GET", "/transfers/accept/:token", answering(pages.showAccept)),
      HttpRouter.add("POST", "/transfers/accept/:token", answering(pages.answer)),
      HttpRouter.add("GET", "/transfers/stop/:token", answering(pages.showStop)),
      HttpRouter.add("POST", "/transfers/stop/:token", answering(pages.stop)),
      HttpRouter.add("GET", "/transfers/done/accepted", Effect.succeed(accepted(span(options.safetyWindowMillis)))),
      HttpRouter.add("GET", "/transfers/done/declined", Effect.succeed(wasDeclined)),
      HttpRouter.add("GET", "/transfers/done/stopped", Effect.succeed(wasStopped)),
      HttpRouter.add("GET", "/transfers/resume", resume(options.publicUrl)),
      HttpRouter.add("GET", stylePath, Effect.succeed(sheet)),
    )
  }))
