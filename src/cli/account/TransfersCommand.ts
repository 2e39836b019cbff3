/** `transfers`: domains of an account that change hands. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { DomainTransfer } from "../../../sdk/client/Client.ts"
import { CliFault } from "../CliFault.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { called } from "./CallerApi.ts"
import { listFlags, printOne, printRows } from "../RowOutput.ts"

const id = Argument.String("ID").pipe(Argument.withDescription("The transfer's id"))

const columns = ({ domain_name, expires_at, id, source_label, status, target_email }: DomainTransfer) => ({
  id,
  domain: domain_name,
  status,
  from: source_label,
  to: target_email,
  expires_at,
})

const list = Command.make(
  "list",
  {
    ...listFlags,
    outgoing: Flag.Boolean("outgoing").pipe(
      Flag.withDescription("What you offered; without it what you are offered"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn("cli.transfers.list")(function* ({ outgoing, ...how }) {
    const path = `/v1/domain-transfers/${outgoing ? "outgoing" : "incoming"}` as const
    yield* printRows(yield* called((api, signal) => api.get(path, { signal })), columns, how, "no transfers")
  }),
).pipe(Command.withDescription("Lists transfers"))

const show = Command.make(
  "show",
  { id, json: jsonFlag },
  Effect.fn("cli.transfers.show")(function* ({ id, json }) {
    const path = "/v1/domain-transfers/{transfer_id}"
    yield* printOne(yield* called((api, signal) => api.get(path, { params: { transfer_id: id }, signal })), json)
  }),
).pipe(Command.withDescription("Shows one transfer"))

/** The id of a domain that the caller sees, by its name or its id. */
const domainId = Effect.fnUntraced(function* (name: string) {
  const found = yield* called(async (api, signal) => {
    for await (const one of api.items("/v1/domains", { signal })) if (one.id === name || one.name === name) return one
    return null
  })
  return found === null ? yield* new CliFault({ message: `you have no domain ${name}` }) : found.id
})

const offer = Command.make(
  "offer",
  {
    domain: Argument.String("DOMAIN").pipe(Argument.withDescription("The domain's name, or its id")),
    to: Flag.String("to").pipe(Flag.withMetavar("EMAIL"), Flag.withDescription("The recipient's address")),
    note: Flag.String("note").pipe(Flag.withDescription("A note to the recipient"), Flag.optional),
    json: jsonFlag,
  },
  Effect.fn("cli.transfers.offer")(function* ({ domain, json, note, to }) {
    const params = { domain_id: yield* domainId(domain) }
    const body = { target_email: to, note: Option.getOrNull(note) }
    const path = "/v1/domains/{domain_id}/transfer"
    yield* printOne(yield* called((api, signal) => api.post(path, { params, body, signal })), json)
  }),
).pipe(Command.withDescription("Offers a domain to another account"))

const accept = Command.make(
  "accept",
  {
    id,
    rotateDkim: Flag.Boolean("rotate-dkim").pipe(
      Flag.withDescription("The domain gets a new DKIM key"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  Effect.fn("cli.transfers.accept")(function* ({ id, json, rotateDkim }) {
    const path = "/v1/domain-transfers/by-id/{transfer_id}/accept"
    const body = rotateDkim ? { rotate_dkim: true } : {}
    yield* printOne(
      yield* called((api, signal) => api.post(path, { params: { transfer_id: id }, body, signal })),
      json,
    )
  }),
).pipe(Command.withDescription("Accepts a domain that you are offered; the safety window begins"))

const decline = Command.make(
  "decline",
  { id, json: jsonFlag },
  Effect.fn("cli.transfers.decline")(function* ({ id, json }) {
    const path = "/v1/domain-transfers/{transfer_id}/decline"
    yield* printOne(yield* called((api, signal) => api.post(path, { params: { transfer_id: id }, signal })), json)
  }),
).pipe(Command.withDescription("Declines a domain that you are offered"))

const cancel = Command.make(
  "cancel",
  { id, json: jsonFlag },
  Effect.fn("cli.transfers.cancel")(function* ({ id, json }) {
    const path = "/v1/domain-transfers/{transfer_id}"
    yield* printOne(yield* called((api, signal) => api.delete(path, { params: { transfer_id: id }, signal })), json)
  }),
).pipe(Command.withDescription("Takes an offer of yours back"))

export const transfers = Command.make("transfers").pipe(
  Command.withDescription("Transfers of your account's domains (BAILIWICK_KEY)"),
  Command.withSubcommands([list, show, offer, accept, decline, cancel]),
)
