/**
 * The types of every endpoint, from the contract itself. Only types are imported: nothing of Effect is in the console's
 * bundle. A value has its JSON form, as it is sent.
 */
import type { Api } from "../../schemas/api/Api.ts"

type Groups = (typeof Api)["groups"]
type EndpointOf<Group> = Group extends { readonly endpoints: infer Endpoints } ? Endpoints[keyof Endpoints] : never

interface Declared {
  readonly identifier: string
  readonly method: string
  readonly path: string
}

type Endpoint = Extract<EndpointOf<Groups[keyof Groups]>, Declared>

/** The name of an endpoint: `listWebhooks`. */
export type EndpointName = Endpoint["identifier"]

type Named<Name extends EndpointName> = Extract<Endpoint, { readonly identifier: Name }>

/** A value without the brands of ids, as forms have it. */
type Plain<Value> = Value extends { readonly "~effect/Brand": unknown } ? string
  : Value extends object ? { readonly [Key in keyof Value]: Plain<Value[Key]> }
  : Value

type JsonOf<Part> = Part extends { readonly Type: infer Json } ? Json : never

type KeysOf<Part> = Extract<keyof JsonOf<Part>, string>

/** A value of a query or a header; undefined leaves it out. */
type Text = string | number | boolean | undefined

type Section<Name extends string, Part, Value> = [Part] extends [never] ? { readonly [K in Name]?: never }
  : string extends KeysOf<Part> ? { readonly [K in Name]?: never }
  : [KeysOf<Part>] extends [never] ? { readonly [K in Name]?: never }
  : { readonly [K in Name]: Value }

/** The parts of a request of an endpoint. `headers`: If-Match; the client sends the idempotency key by itself. */
export type RequestOf<Name extends EndpointName> =
  & Section<"params", Named<Name>["~Params"], { readonly [K in KeysOf<Named<Name>["~Params"]>]: string }>
  & ([KeysOf<Named<Name>["~Query"]>] extends [never] ? { readonly query?: never }
    : { readonly query?: { readonly [K in KeysOf<Named<Name>["~Query"]>]?: Text } })
  & ([JsonOf<Named<Name>["~Payload"]>] extends [never] ? { readonly payload?: never }
    : { readonly payload: Plain<JsonOf<Named<Name>["~Payload"]>> })
  & { readonly headers?: { readonly [K in KeysOf<Named<Name>["~Headers"]>]?: string } }

/** The answer of an endpoint. */
export type AnswerOf<Name extends EndpointName> = JsonOf<Named<Name>["~Success"]>

/** Method and path of every endpoint: the type of the table in RouteTable.ts, which is complete and true, or no type. */
export type RouteTable = { readonly [Name in EndpointName]: readonly [Named<Name>["method"], Named<Name>["path"]] }
