/** `campaigns`: of an institution, as its administrators open them and owners and delegates answer. */
import { Clock, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { cliCommand } from "../../../services/platform/CommandSpelling.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { firstOf, limitFlag, listFlags, printOne, printRows } from "../RowOutput.ts"
import { untilFlag } from "../Times.ts"
import { called } from "./CallerApi.ts"

const institution = Flag.String("institution").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("The institution's id"),
)

const reason = Flag.String("reason").pipe(Flag.withDescription("Why, for the evidence"))

const deadline = untilFlag("deadline").pipe(Flag.withDescription("Until when it is answered, or for how long (14d)"))

const id = Argument.String("ID").pipe(Argument.withDescription("The campaign's id"))

const itemId = Argument.String("ITEM").pipe(Argument.withDescription("The item's id"))

const campaign = Flag.String("campaign").pipe(Flag.withMetavar("ID"), Flag.withDescription("The item's campaign"))

const campaignsPath = "/v1/institutions/{institution_id}/campaigns"
const campaignPath = `${campaignsPath}/{campaign_id}` as const
const itemPath = `${campaignPath}/items/{item_id}` as const

const timeOf = (at: (now: number) => number) =>
  Effect.map(Clock.currentTimeMillis, (now) => new Date(at(now)).toISOString())

const pageSize = "100"

const list = Command.make(
  "list",
  { ...listFlags, institution, limit: limitFlag },
  Effect.fn("cli.campaigns.list")(function* ({ institution: institution_id, limit, ...how }) {
    const found = yield* called((api, signal) =>
      firstOf(
        api.items(campaignsPath, { params: { institution_id }, query: { limit: pageSize }, signal }),
        limit,
      )
    )
    const columns = ({ campaign_id, deadline, name, state }: typeof found[number]) => ({
      id: campaign_id,
      state,
      deadline,
      name,
    })
    yield* printRows(found, columns, how, "no campaigns")
  }),
).pipe(Command.withDescription("Lists campaigns, newest first"))

const show = Command.make(
  "show",
  { id, institution, json: jsonFlag },
  Effect.fn("cli.campaigns.show")(function* ({ id: campaign_id, institution: institution_id, json }) {
    const params = { institution_id, campaign_id }
    yield* printOne(yield* called((api, signal) => api.get(campaignPath, { params, signal })), json)
  }),
).pipe(Command.withDescription("Shows a campaign, and how many of its items are in which state"))

const items = Command.make(
  "items",
  {
    ...listFlags,
    id,
    institution,
    limit: limitFlag.pipe(Flag.withDescription("The most to list (default 50)")),
    state: Flag.Literals("state", ["open", "confirmed", "proposed_for_revocation", "withdrawn", "unanswered"]).pipe(
      Flag.withDescription("In this state only"),
      Flag.optional,
    ),
  },
  Effect.fn("cli.campaigns.items")(function* ({ id: campaign_id, institution: institution_id, limit, state, ...how }) {
    const params = { institution_id, campaign_id }
    const wanted = { limit: pageSize, ...(Option.isSome(state) ? { state: state.value } : {}) }
    const found = yield* called((api, signal) =>
      firstOf(api.items(`${campaignPath}/items`, { params, query: wanted, signal }), limit)
    )
    const columns = (item: typeof found[number]) => ({
      item: item.item_id,
      state: item.state,
      access: item.access_id,
      person: item.person_id,
      project: item.project_id,
      role: item.role,
    })
    yield* printRows(found, columns, how, "no items")
  }),
).pipe(Command.withDescription("Lists the items of a campaign with their answers"))

const mine = Command.make(
  "mine",
  { ...listFlags, limit: limitFlag.pipe(Flag.withDescription("The most to list (default 50)")) },
  Effect.fn("cli.campaigns.mine")(function* ({ limit, ...how }) {
    const found = yield* called((api, signal) =>
      firstOf(api.items("/v1/me/campaign-items", { query: { limit: pageSize }, signal }), limit)
    )
    const columns = (item: typeof found[number]) => ({
      item: item.item_id,
      campaign: item.campaign_id,
      institution: item.institution_id,
      deadline: item.deadline,
      person: item.display_name ?? item.person_id,
      project: item.project_name,
      role: item.role,
    })
    yield* printRows(found, columns, how, "nothing waits for you")
  }),
).pipe(Command.withDescription("Lists the items that wait for your answer, in any institution"))

const several = (name: string, what: string) =>
  Flag.String(name).pipe(Flag.withMetavar("ID"), Flag.withDescription(what), Flag.atLeast(0))

const open = Command.make(
  "open",
  {
    institution,
    name: Flag.String("name").pipe(Flag.withDescription("What those who answer know it by")),
    reason,
    deadline,
    access: several("access", "Over this Access; may be given again"),
    project: several("project", "Over the Access to this project; may be given again"),
    overdue: Flag.Boolean("overdue").pipe(
      Flag.withDescription("Only over Access whose review is overdue"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  Effect.fn("cli.campaigns.open")(function* (asked) {
    const { access, institution: institution_id, json, name, overdue, project, reason } = asked
    const body = {
      name,
      reason,
      deadline: yield* timeOf(asked.deadline),
      ...(access.length === 0 ? {} : { access_ids: access }),
      ...(project.length === 0 ? {} : { project_ids: project }),
      ...(overdue ? { overdue } : {}),
    }
    const params = { institution_id }
    yield* printOne(yield* called((api, signal) => api.post(campaignsPath, { params, body, signal })), json)
  }),
).pipe(
  Command.withDescription("Opens a campaign over the institution's Access, or over what the flags name"),
  Command.withExamples([{
    command: cliCommand(
      'campaigns open --institution fern --name Spring --deadline 14d --overdue --reason "a year on"',
    ),
    description: "Two weeks for what nobody looked at for a year",
  }]),
)

const answering = (name: "confirm" | "propose", answer: "confirm" | "propose_revocation", what: string) =>
  Command.make(
    name,
    { itemId, institution, campaign, reason, json: jsonFlag },
    Effect.fn(`cli.campaigns.${name}`)(function* (asked) {
      const { campaign: campaign_id, institution: institution_id, itemId: item_id, json, reason } = asked
      const params = { institution_id, campaign_id, item_id }
      const body = { answer, reason }
      yield* printOne(
        yield* called((api, signal) => api.post(`${itemPath}/answer`, { params, body, signal })),
        json,
      )
    }),
  ).pipe(Command.withDescription(what))

const delegate = Command.make(
  "delegate",
  {
    itemId,
    institution,
    campaign,
    to: Flag.String("to").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("A member of the institution; without it nobody any more"),
      Flag.optional,
    ),
    reason,
    json: jsonFlag,
  },
  Effect.fn("cli.campaigns.delegate")(function* (asked) {
    const { campaign: campaign_id, institution: institution_id, itemId: item_id, json, reason, to } = asked
    const params = { institution_id, campaign_id, item_id }
    const body = { person_id: Option.getOrNull(to), reason }
    yield* printOne(
      yield* called((api, signal) => api.post(`${itemPath}/delegate`, { params, body, signal })),
      json,
    )
  }),
).pipe(Command.withDescription("Lets a member answer an item beside the project's owners"))

const reschedule = Command.make(
  "reschedule",
  { id, institution, deadline, reason, json: jsonFlag },
  Effect.fn("cli.campaigns.reschedule")(function* (asked) {
    const { id: campaign_id, institution: institution_id, json, reason } = asked
    const params = { institution_id, campaign_id }
    const body = { deadline: yield* timeOf(asked.deadline), reason }
    yield* printOne(
      yield* called((api, signal) => api.post(`${campaignPath}/reschedule`, { params, body, signal })),
      json,
    )
  }),
).pipe(Command.withDescription("Moves the deadline of an open campaign"))

const close = Command.make(
  "close",
  { id, institution, reason, json: jsonFlag },
  Effect.fn("cli.campaigns.close")(function* ({ id: campaign_id, institution: institution_id, json, reason }) {
    const params = { institution_id, campaign_id }
    const body = { reason }
    yield* printOne(
      yield* called((api, signal) => api.post(`${campaignPath}/close`, { params, body, signal })),
      json,
    )
  }),
).pipe(Command.withDescription("Closes a campaign before its deadline"))

export const campaigns = Command.make("campaigns").pipe(
  Command.withDescription("Access that is looked at again until a deadline (BAILIWICK_KEY: your access token)"),
  Command.withSubcommands([
    list,
    show,
    items,
    mine,
    open,
    answering("confirm", "confirm", "Says of an item that the Access is still needed"),
    answering(
      "propose",
      "propose_revocation",
      "Proposes that an item's Access is revoked, which an administrator decides",
    ),
    delegate,
    reschedule,
    close,
  ]),
)
