/** `reviews`: access reviews of an institution, as its sponsors and administrators decide them. */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { GrantReview } from "../../../sdk/client/Client.ts"
import { CliFault } from "../CliFault.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { called } from "./CallerApi.ts"
import { listFlags, printOne, printRows } from "../RowOutput.ts"

const institution = Flag.String("institution").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("The institution's id"),
)

const reason = Flag.String("reason").pipe(Flag.withDescription("Why, for the evidence"))

const id = Argument.String("ID").pipe(Argument.withDescription("The review's id"))

const reviewsPath = "/v1/institutions/{institution_id}/access-grant-reviews"

const columns = (review: GrantReview) => ({
  id: review.review_id,
  person: review.person_id,
  project: review.project_id,
  decided: review.decision.state,
  delivered: review.delivery.state,
  acknowledged: review.acknowledgement.state,
  access: review.effective_access.state,
})

const read = (institution_id: string) =>
  called((api, signal) => api.get(reviewsPath, { params: { institution_id }, signal }))

const list = Command.make(
  "list",
  {
    ...listFlags,
    institution,
    state: Flag.Literals("state", ["proposed", "approved", "revoked"]).pipe(
      Flag.withDescription("Of this state only"),
      Flag.optional,
    ),
  },
  Effect.fn("cli.reviews.list")(function* ({ institution, state, ...how }) {
    const { reviews } = yield* read(institution)
    const wanted = Option.match(state, {
      onNone: () => reviews,
      onSome: (one) => reviews.filter((review) => review.state === one),
    })
    yield* printRows(wanted, columns, how, "no reviews")
  }),
).pipe(Command.withDescription("Lists reviews: what was decided, delivered, acknowledged and is in effect"))

const candidates = Command.make(
  "candidates",
  { ...listFlags, institution },
  Effect.fn("cli.reviews.candidates")(function* ({ institution, ...how }) {
    yield* printRows((yield* read(institution)).candidates, (one) => ({ ...one }), how, "no Access to propose")
  }),
).pipe(Command.withDescription("Lists the Access that a review may be proposed of"))

const show = Command.make(
  "show",
  { id, institution, json: jsonFlag },
  Effect.fn("cli.reviews.show")(function* ({ id, institution, json }) {
    const found = (yield* read(institution)).reviews.find(({ review_id }) => review_id === id)
    if (found === undefined) return yield* new CliFault({ message: `the institution has no review ${id}` })
    yield* printOne(found, json)
  }),
).pipe(Command.withDescription("Shows one review"))

const propose = Command.make(
  "propose",
  {
    institution,
    access: Flag.String("access").pipe(Flag.withMetavar("ID"), Flag.withDescription("The Access")),
    version: Flag.Int("access-version").pipe(Flag.withDescription("The version of it that you looked at")),
    reason,
    json: jsonFlag,
  },
  Effect.fn("cli.reviews.propose")(function* ({ access, institution, json, reason, version }) {
    const body = { access_id: access, access_version: version, reason }
    const params = { institution_id: institution }
    yield* printOne(yield* called((api, signal) => api.post(reviewsPath, { params, body, signal })), json)
  }),
).pipe(Command.withDescription("Proposes a review of exactly one version of an Access, as its sponsor"))

const approve = Command.make(
  "approve",
  {
    id,
    institution,
    reason,
    json: jsonFlag,
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Says whether it would be accepted now, and changes nothing"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn("cli.reviews.approve")(function* ({ dryRun, id, institution, json, reason }) {
    const path = `${reviewsPath}/{review_id}/approve` as const
    const asked = { params: { institution_id: institution, review_id: id }, body: { reason } }
    const query = dryRun ? { dry_run: true } : {}
    const receipt = yield* called((api, signal) => api.post(path, { ...asked, query, signal }))
    yield* receipt === undefined ? Console.log("it would be accepted now") : printOne(receipt, json)
  }),
).pipe(Command.withDescription("Approves a review that another person proposed"))

const revoke = Command.make(
  "revoke",
  { id, institution, reason, json: jsonFlag },
  Effect.fn("cli.reviews.revoke")(function* ({ id, institution, json, reason }) {
    const path = `${reviewsPath}/{review_id}/revoke` as const
    const params = { institution_id: institution, review_id: id }
    yield* printOne(yield* called((api, signal) => api.post(path, { params, body: { reason }, signal })), json)
  }),
).pipe(Command.withDescription("Revokes a review"))

export const reviews = Command.make("reviews").pipe(
  Command.withDescription("Access reviews of your institution (BAILIWICK_KEY: your access token)"),
  Command.withSubcommands([
    list,
    candidates,
    show,
    propose,
    approve,
    revoke,
  ]),
)
