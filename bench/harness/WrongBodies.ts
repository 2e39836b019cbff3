/** Bodies of nearly 256 KiB that are refused, each wrong in another way, and the endpoints that they are sent to. */

/** The sender: an account of the free plan, an active person, a lifecycle service, or a client without a credential. */
export type Sender = "account" | "person" | "service" | "anonymous"

export interface WrongBody {
  readonly title: string
  readonly sender: Sender
  readonly method: "POST" | "PUT" | "PATCH"
  readonly path: string
  readonly body: string
}

/** Bytes, a little below the limit of the program. */
export const size = 250_000

/** As many copies of an item as fit, joined by commas. */
const many = (item: string, bytes = size): string => {
  const count = Math.floor(bytes / (item.length + 1))
  return Array.from({ length: count }, () => item).join(",")
}

/** As many members of distinct names as fit, each with this value. */
const members = (value: string, bytes = size): string => {
  const parts: Array<string> = []
  for (let length = 0, n = 0; length < bytes; n++) {
    const part = `"k${n}":${value}`
    parts.push(part)
    length += part.length + 1
  }
  return parts.join(",")
}

const long = (character: string) => character.repeat(size / character.length)
const nested = `${"[".repeat(28)}${"]".repeat(28)}`
const objects = `${'{"a":'.repeat(28)}1${"}".repeat(28)}`

const organization = (fields: string) =>
  `{"name":"A name","organization_type":"company","website":"https://a.example","purpose":"to be refused at once",` +
  `"reason":"as the bench has it"${fields}}`

const contact = (more: string) => `{"name":"A","email":"a@b.example"${more}}`

const credential = (more: string) =>
  `{"proof":{"type":"webauthn.create","credential":{"id":"a","rawId":"a","type":"public-key",` +
  `"response":{"clientDataJSON":"a","attestationObject":"a"${more}`

const webhooks = "/v1/webhooks/"
const keys = "/v1/api-keys/"
const preferences = "/v1/notifications/preferences"
const organizations = "/v1/me/organization-requests"
const websites = "/v1/institutions/institution-1/websites"
const proofs = "/v1/me/credential-actions/none/complete"
const streams = "/v1/lifecycle/streams"
const poll = `${streams}/none/poll`

const url = `"url":"https://a.example/"`

type Row = readonly [title: string, path: string, body: string, method?: "PUT" | "PATCH"]

const ofAccount: ReadonlyArray<Row> = [
  ["events: numbers", webhooks, `{${url},"events":[${many("0")}]}`],
  ["events: unknown ones", webhooks, `{${url},"events":[${many('"x"')}]}`],
  ["events: known ones, then one that is not", webhooks, `{${url},"events":[${many('"email.sent"')},0]}`],
  ["events: objects", webhooks, `{${url},"events":[${many("{}")}]}`],
  ["events of a change: lists", `${webhooks}none`, `{"events":[${many("[]")}]}`, "PATCH"],
  ["required members are missing beside many", webhooks, `{${members("1")}}`],
  ["required members are missing beside a long one", webhooks, `{"x":"${long("x")}"}`],
  ["a long URL", webhooks, `{"url":"https://${long("a")}","events":["email.sent"]}`],
  ["permissions: numbers", keys, `{"name":"A","permissions":[${many("0")}]}`],
  ["a long name", keys, `{"name":"${long("a")}"}`],
  ["a long name of surrogate pairs", keys, `{"name":"${"𝒳".repeat(size / 4)}"}`],
  ["a long id of a list", keys, `{"name":"A","permissions":"${long("a")}"}`],
  ["many numbers that no double holds", keys, `{"name":[${many("1e999")}]}`],
  ["many strings that no database holds", keys, `{"name":[${many('"\\u0000"')}]}`],
  ["many halves of surrogate pairs", keys, `{${members('"\\ud800"')}}`],
  ["numbers of 199 digits", keys, `{"name":[${many("9".repeat(199))}]}`],
  ["lists in lists", keys, `{"name":[${many(nested)}]}`],
  ["objects in objects", keys, `{"name":[${many(objects)}]}`],
  ["a 33rd level at the end", keys, `{"a":[${many("0")},${"[".repeat(40)}`],
  ["no JSON at the end", keys, `{"a":[${many('"a"')},]}`],
  ["an unterminated string", keys, `{"a":"${long("a")}`],
  ["preferences: a list", preferences, `[${many("0")}]`, "PUT"],
  ["preferences: unknown categories", preferences, `{"preferences":[],${members("1")}}`, "PUT"],
  ["a transfer's long note", "/v1/domains/none/transfer", `{"target_email":"a@b.example","note":"${long("a")}"}`],
]

const ofPerson: ReadonlyArray<Row> = [
  ["domains: numbers", organizations, organization(`,"contacts":[${contact("")}],"domains":[${many("0")}]`)],
  ["contacts: numbers", organizations, organization(`,"domains":["a.example"],"contacts":[${many("0")}]`)],
  ["contacts: empty objects", organizations, organization(`,"domains":["a.example"],"contacts":[${many("{}")}]`)],
  ["unknown members", organizations, `{${members("1")}}`],
  [
    "unknown members of contacts",
    organizations,
    organization(
      `,"domains":["a.example"],"contacts":[${
        Array.from({ length: 10 }, () => contact(`,${members("1", size / 10)}`))
      }]`,
    ),
  ],
  [
    "unknown members of long names",
    organizations,
    `{"${"n".repeat(size / 4)}1":1,"${"n".repeat(size / 4)}2":2,"${"n".repeat(size / 4)}3":3}`,
  ],
  ["all members of a long object are missing", organizations, `{"x":[${many("0")}]}`],
  ["a long domain", organizations, organization(`,"contacts":[${contact("")}],"domains":["${long("a.")}a"]`)],
  ["a long purpose", organizations, `{"purpose":"${long("p")}"}`],
  ["redirect URIs: numbers", websites, `{"redirect_uris":[${many("0")}]}`],
  [
    "redirect URIs: long ones",
    websites,
    `{"redirect_uris":[${Array.from({ length: 16 }, () => `"http://${"a".repeat(15_000)}*"`)}]}`,
  ],
  ["scopes: unknown ones", websites, `{"requested_scopes":[${many('"x"')}]}`],
  [
    "a version of many digits",
    `${websites}/none/withdraw`,
    `{"expected_version":"${long("9")}","reason":"as the bench has it"}`,
  ],
  ["an unknown kind of proof", proofs, `{"proof":{"type":"${long("x")}"}}`],
  ["a proof with many members", proofs, `${credential("")},${members("1")}},"x":1}}}`],
  ["transports: numbers", proofs, `${credential(`,"transports":[${many("0")}]`)}}}}}`],
  [
    "a long challenge that is no base64",
    proofs,
    `{"proof":{"type":"webauthn.create","credential":{"id":"${long("a")}*"}}}`,
  ],
]

const ofService: ReadonlyArray<Row> = [
  ["acknowledged: numbers", poll, `{"ack":[${many("0")}]}`],
  ["ten thousand acknowledged, all numbers", poll, `{"ack":[${many("0", 20_000)}]}`],
  ["errors: numbers", poll, `{"setErrs":{${members("0")}}}`],
  ["errors: empty objects", poll, `{"setErrs":{${members("{}")}}}`],
  ["a stream's events: numbers", streams, `{"events_requested":[${many("0")}]}`],
  ["a stream's audience: numbers", streams, `{"aud":[${many("0")}]}`],
  [
    "a subject of many members",
    "/v1/lifecycle/subjects:add",
    `{"stream_id":"a","subject":{"format":"complex",${members("1")}}}`,
  ],
  [
    "aliases that are none",
    "/v1/lifecycle/subjects:add",
    `{"stream_id":"a","subject":{"format":"aliases","identifiers":[${many("0")}]}}`,
  ],
]

const ofNobody: ReadonlyArray<Row> = [
  ["no credential", webhooks, `{${url},"events":[${many("0")}]}`],
  ["no credential on the identity API", organizations, `{${members("1")}}`],
  ["a stop link's token with a body", "/v1/domain-transfers/stop/none", `{${members("1")}}`],
]

const by = (sender: Sender, rows: ReadonlyArray<Row>): ReadonlyArray<WrongBody> =>
  rows.map(([title, path, body, method]) => ({ title, sender, method: method ?? "POST", path, body }))

export const wrongBodies: ReadonlyArray<WrongBody> = [
  ...by("account", ofAccount),
  ...by("person", ofPerson),
  ...by("service", ofService),
  ...by("anonymous", ofNobody),
]
