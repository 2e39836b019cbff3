/** `api-keys`: the API keys of an account. (`keys` are those that lifecycle messages are signed with.) */
import { Console, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { ApiKey } from "../../../sdk/client/Client.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { called } from "./CallerApi.ts"
import { listFlags, printOne, printRows } from "../RowOutput.ts"

const columns = ({ created_at, id, is_active, key_prefix, last_used_at, name }: ApiKey) => ({
  id,
  name,
  begins: key_prefix,
  state: is_active ? "active" : "revoked",
  created_at,
  last_used_at,
})

const list = Command.make(
  "list",
  listFlags,
  Effect.fn("cli.api-keys.list")(function* (how) {
    yield* printRows(yield* called((api, signal) => api.get("/v1/api-keys/", { signal })), columns, how, "no API keys")
  }),
).pipe(Command.withDescription("Lists API keys; of a key its first characters"))

const create = Command.make(
  "create",
  { name: Flag.String("name").pipe(Flag.withDescription("The key's name, for you")), json: jsonFlag },
  Effect.fn("cli.api-keys.create")(function* ({ json, name }) {
    yield* printOne(yield* called((api, signal) => api.post("/v1/api-keys/", { body: { name }, signal })), json)
  }),
).pipe(Command.withDescription("Creates an API key and prints it, once"))

const revoke = Command.make(
  "revoke",
  { id: Argument.String("ID").pipe(Argument.withDescription("The key's id")) },
  Effect.fn("cli.api-keys.revoke")(function* ({ id }) {
    yield* called((api, signal) => api.delete("/v1/api-keys/{key_id}", { params: { key_id: id }, signal }))
    yield* Console.log(`${id} revoked`)
  }),
).pipe(Command.withDescription("Revokes an API key"))

export const apiKeys = Command.make("api-keys").pipe(
  Command.withDescription("API keys of your account (BAILIWICK_KEY)"),
  Command.withSubcommands([list, create, revoke]),
)
