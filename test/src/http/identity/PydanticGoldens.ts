/**
 * Refused bodies, and the answers of pydantic 2.13.5 under FastAPI 0.142.2 to them for models of the same tables: each
 * fault and its place, in order. A text that begins with a comma is appended to the smallest body of its kind.
 */
import { few, many, noString, oneOf, short } from "../../../schemas/identity/FieldRows.ts"
import type { Fault } from "../../../../schemas/Validation/Fault.ts"

type Said = Omit<Fault, "loc" | "input">
export type Refused = readonly [
  text: string,
  ...faults: ReadonlyArray<readonly [Said, ...ReadonlyArray<string | number>]>,
]

const said = (type: string, msg: string, ctx?: Readonly<Record<string, unknown>>): Said => ({
  type,
  msg,
  ...(ctx ? { ctx } : {}),
})
const missing = said("missing", "Field required")
const unknown = said("extra_forbidden", "Extra inputs are not permitted")
const noList = said("list_type", "Input should be a valid list")
const noMap = said("dict_type", "Input should be a valid dictionary")
const noObject = said("model_attributes_type", "Input should be a valid dictionary or object to extract fields from")
const noInt = said("int_type", "Input should be a valid integer")
const unreadInt = said("int_parsing", "Input should be a valid integer, unable to parse string as an integer")
const fraction = said("int_from_float", "Input should be a valid integer, got a number with a fractional part")
const atLeastOne = said("greater_than_equal", "Input should be greater than or equal to 1", { ge: 1 })
const noBoolean = said("bool_type", "Input should be a valid boolean")
const unreadBoolean = said("bool_parsing", "Input should be a valid boolean, unable to interpret input")
const noTag = said("union_tag_not_found", "Unable to extract tag using discriminator 'type'", {
  discriminator: "'type'",
})
const noMatch = (pattern: string) =>
  said("string_pattern_mismatch", `String should match pattern '${pattern}'`, { pattern })
const broken = (error: string) => said("json_invalid", "JSON decode error", { error })

const scopes = oneOf("'openid', 'profile' or 'email'")
const environments = oneOf("'staging' or 'production'")
const capabilities = oneOf("'events.read', 'snapshot.read', 'cursor.acknowledge' or 'stream.manage'")
const actions = oneOf(
  "'passkey.register', 'passkey.remove', 'totp.enroll', 'totp.remove', 'recovery_codes.generate', " +
    "'authenticator.rename', 'session.revoke' or 'sessions.revoke_others'",
)

export const judgedBodies: Readonly<Record<string, ReadonlyArray<Refused>>> = {
  "RequestFields": [
    [',"contacts":null', [noList, "contacts"]],
    [',"contacts":{}', [noList, "contacts"]],
    [',"contacts":"x"', [noList, "contacts"]],
    [',"contacts":true', [noList, "contacts"]],
    [',"contacts":[1,"x",null,[]]', [noObject, "contacts", 0], [noObject, "contacts", 1], [noObject, "contacts", 2], [
      noObject,
      "contacts",
      3,
    ]],
    [',"contacts":[{}]', [missing, "contacts", 0, "name"], [missing, "contacts", 0, "email"]],
    [',"contacts":[{"name":"n","email":"a@b"},{"name":"n"}]', [missing, "contacts", 1, "email"]],
    [
      ',"contacts":[{"name":1,"email":[],"role":"OWNER","phone":{},"x":0}]',
      [noString, "contacts", 0, "name"],
      [noString, "contacts", 0, "email"],
      [oneOf("'owner', 'technical', 'security' or 'billing'"), "contacts", 0, "role"],
      [noString, "contacts", 0, "phone"],
      [unknown, "contacts", 0, "x"],
    ],
    [',"contacts":[{},{},{},{},{},{},{},{},{},{},{}]', [many(10), "contacts"]],
    [',"domains":[1,null,["a.b"]]', [noString, "domains", 0], [noString, "domains", 1], [noString, "domains", 2]],
    [',"domains":[1,2,3,4,5,6,7,8,9,10,11]', [many(10), "domains"]],
    [',"domains":{"0":"a.b"}', [noList, "domains"]],
    [',"name":1,"website":null,"purpose":[]', [noString, "name"], [noString, "website"], [noString, "purpose"]],
    [',"zz":1,"aa":{"b":null},"name":"a"', [short(2), "name"], [unknown, "zz"], [unknown, "aa"]],
    [',"__proto__":1,"constructor":2', [unknown, "__proto__"], [unknown, "constructor"]],
    [',"":0', [unknown, ""]],
    [',"reason":"short","reason":"longer than that","name":"a"', [short(2), "name"]],
  ],
  "Website registration": [
    [',"requested_scopes":["x"]', [scopes, "requested_scopes", 0]],
    [',"requested_scopes":["openid",1,null,true]', [many(3), "requested_scopes"]],
    [',"requested_scopes":["openid",1,null]', [scopes, "requested_scopes", 1], [scopes, "requested_scopes", 2]],
    [',"requested_scopes":"openid"', [noList, "requested_scopes"]],
    [',"environment":null,"connector_kind":1', [oneOf("'service_connector' or 'standard_oidc'"), "connector_kind"], [
      environments,
      "environment",
    ]],
    [',"redirect_uris":[1,null]', [noString, "redirect_uris", 0], [noString, "redirect_uris", 1]],
    [',"redirect_uris":null,"post_logout_redirect_uris":"https://a"', [noList, "redirect_uris"], [
      noList,
      "post_logout_redirect_uris",
    ]],
    [',"owner_person_id":"","connector_product":0,"preview_digest":[]', [noString, "connector_product"], [
      noString,
      "preview_digest",
    ], [short(1), "owner_person_id"]],
    [',"environment":"STAGING","requested_scopes":[]', [environments, "environment"], [few, "requested_scopes"]],
  ],
  "Transition": [
    [',"expected_version":"x"', [unreadInt, "expected_version"]],
    [',"expected_version":""', [unreadInt, "expected_version"]],
    [',"expected_version":"1.5"', [unreadInt, "expected_version"]],
    [',"expected_version":"1e3"', [unreadInt, "expected_version"]],
    [',"expected_version":"0x1"', [unreadInt, "expected_version"]],
    [',"expected_version":" "', [unreadInt, "expected_version"]],
    [',"expected_version":"1__0"', [unreadInt, "expected_version"]],
    [',"expected_version":"+"', [unreadInt, "expected_version"]],
    [',"expected_version":1.5', [fraction, "expected_version"]],
    [',"expected_version":-1', [atLeastOne, "expected_version"]],
    [',"expected_version":0', [atLeastOne, "expected_version"]],
    [',"expected_version":false', [atLeastOne, "expected_version"]],
    [',"expected_version":null', [noInt, "expected_version"]],
    [',"expected_version":[]', [noInt, "expected_version"]],
    [',"expected_version":[1]', [noInt, "expected_version"]],
    [',"expected_version":{}', [noInt, "expected_version"]],
    [',"expected_version":"0"', [atLeastOne, "expected_version"]],
    [',"expected_version":"-1"', [atLeastOne, "expected_version"]],
    [',"expected_version":"-0"', [atLeastOne, "expected_version"]],
    [',"expected_version":-100000000000000000000', [atLeastOne, "expected_version"]],
    [',"expected_version":1e-3', [fraction, "expected_version"]],
    [',"expected_version":"٣"', [unreadInt, "expected_version"]],
    [',"expected_version":"1."', [unreadInt, "expected_version"]],
    [',"expected_version":".1"', [unreadInt, "expected_version"]],
    [',"expected_version":"1 0"', [unreadInt, "expected_version"]],
    [',"expected_version":"NaN"', [unreadInt, "expected_version"]],
    [',"expected_version":"Infinity"', [unreadInt, "expected_version"]],
  ],
  "OwnerChange": [
    [',"active":"maybe"', [unreadBoolean, "active"]],
    [',"active":""', [unreadBoolean, "active"]],
    [',"active":" true"', [unreadBoolean, "active"]],
    [',"active":2', [unreadBoolean, "active"]],
    [',"active":-1', [unreadBoolean, "active"]],
    [',"active":0.5', [noBoolean, "active"]],
    [',"active":1e3', [unreadBoolean, "active"]],
    [',"active":null', [noBoolean, "active"]],
    [',"active":[]', [noBoolean, "active"]],
    [',"active":{}', [noBoolean, "active"]],
    [',"active":"2"', [unreadBoolean, "active"]],
    [',"active":"tru"', [unreadBoolean, "active"]],
  ],
  "LifecycleServiceProposal": [
    [',"capabilities":["x"]', [capabilities, "capabilities", 0]],
    [',"capabilities":["events.read","x",1]', [capabilities, "capabilities", 1], [capabilities, "capabilities", 2]],
    [',"capabilities":["events.read","snapshot.read","cursor.acknowledge","stream.manage","x"]', [
      many(4),
      "capabilities",
    ]],
    [',"capabilities":{}', [noList, "capabilities"]],
    [',"service_id":null,"environment":true', [noString, "service_id"], [environments, "environment"]],
  ],
  "Reason": [
    ["[]", [noObject]],
    ["[{}]", [noObject]],
    ['"x"', [noObject]],
    ['""', [noObject]],
    ["0", [noObject]],
    ["true", [noObject]],
    ["1.5", [noObject]],
    ["null", [missing]],
    ["", [missing]],
    ["{}", [missing, "reason"]],
    ['{"reason":null}', [noString, "reason"]],
    ['{"other":1}', [missing, "reason"], [unknown, "other"]],
    ["{", [broken("Expecting property name enclosed in double quotes"), 1]],
    ["}", [broken("Expecting value"), 0]],
    ["[", [broken("Expecting value"), 1]],
    ["]", [broken("Expecting value"), 0]],
    ['{"a"', [broken("Expecting ':' delimiter"), 4]],
    ['{"a":', [broken("Expecting value"), 5]],
    ['{"a":1', [broken("Expecting ',' delimiter"), 6]],
    ['{"a":1,', [broken("Expecting property name enclosed in double quotes"), 7]],
    ['{"a":1,}', [broken("Expecting property name enclosed in double quotes"), 7]],
    ['{"a":1 "b":2}', [broken("Expecting ',' delimiter"), 7]],
    ["{'a':1}", [broken("Expecting property name enclosed in double quotes"), 1]],
    ["{a:1}", [broken("Expecting property name enclosed in double quotes"), 1]],
    ["[1,]", [broken("Expecting value"), 3]],
    ["[1 2]", [broken("Expecting ',' delimiter"), 3]],
    ['"abc', [broken("Unterminated string starting at"), 0]],
    ['"a\\x"', [broken("Invalid \\escape"), 2]],
    ['"a\\u12g4"', [broken("Invalid \\uXXXX escape"), 3]],
    ['"\u0001"', [broken("Invalid control character at"), 1]],
    ["nul", [broken("Expecting value"), 0]],
    ["True", [broken("Expecting value"), 0]],
    ["undefined", [broken("Expecting value"), 0]],
    ["-", [broken("Expecting value"), 0]],
    ["+1", [broken("Expecting value"), 0]],
    ["01", [broken("Extra data"), 1]],
    ["1.", [broken("Extra data"), 1]],
    [".5", [broken("Expecting value"), 0]],
    ["1e", [broken("Extra data"), 1]],
    ["0x1", [broken("Extra data"), 1]],
    ["{} x", [broken("Extra data"), 3]],
    ["{}{}", [broken("Extra data"), 2]],
    ["\u000b{}", [broken("Expecting value"), 0]],
    ["\u00a0{}", [broken("Expecting value"), 0]],
    ['{"é𝒳":}', [broken("Expecting value"), 6]],
    ['["𝒳" 1]', [broken("Expecting ',' delimiter"), 5]],
    ['{"reason":"a\tb"}', [broken("Invalid control character at"), 12]],
    ['{"a":{]}', [broken("Expecting property name enclosed in double quotes"), 6]],
    ["{,}", [broken("Expecting property name enclosed in double quotes"), 1]],
    ["/**/{}", [broken("Expecting value"), 0]],
    ["{}//", [broken("Extra data"), 2]],
    ['{"a":"\\ud800\\u12"}', [broken("Invalid \\uXXXX escape"), 13]],
    ['"\\', [broken("Unterminated string starting at"), 0]],
    [" ", [broken("Expecting value"), 1]],
    ["\n\n", [broken("Expecting value"), 2]],
    ['{"reason":"12345678"}\u0000', [broken("Extra data"), 21]],
    ['{"a":1.e5}', [broken("Expecting ',' delimiter"), 6]],
    ['{"a":00}', [broken("Expecting ',' delimiter"), 6]],
  ],
  "StartAction": [
    ["", [missing]],
    ["null", [missing]],
    [" ", [broken("Expecting value"), 1]],
    ["[]", [noObject]],
    ['{"kind":1}', [actions, "kind"]],
    ['{"kind":"x","other":"y"}', [actions, "kind"], [unknown, "other"]],
    ['{"kind":"totp.enroll","label":""}', [short(1), "label"]],
    ['{"kind":"totp.enroll","label":[],"target_id":0}', [noString, "target_id"], [noString, "label"]],
  ],
  "FinishAction": [
    ['{"proof":null}', [noObject, "proof"]],
    ['{"proof":1}', [noObject, "proof"]],
    ['{"proof":[]}', [noObject, "proof"]],
    ['{"proof":{}}', [noTag, "proof"]],
    ['{"proof":{"type":"totp"}}', [missing, "proof", "totp", "code"]],
    ['{"proof":{"type":"totp","code":1}}', [noString, "proof", "totp", "code"]],
    ['{"proof":{"type":"totp","code":"12345"}}', [noMatch("^[0-9]{6}$"), "proof", "totp", "code"]],
    ['{"proof":{"type":"totp","code":"123456\\n"}}', [noMatch("^[0-9]{6}$"), "proof", "totp", "code"]],
    ['{"proof":{"type":"totp","code":"１２３４５６"}}', [noMatch("^[0-9]{6}$"), "proof", "totp", "code"]],
    ['{"proof":{"type":"totp","code":"123456","x":1}}', [unknown, "proof", "totp", "x"]],
    ['{"proof":{"type":"confirm"}}', [missing, "proof", "confirm", "acknowledged"]],
    ['{"proof":{"type":"confirm","acknowledged":false}}', [oneOf("True"), "proof", "confirm", "acknowledged"]],
    ['{"proof":{"type":"confirm","acknowledged":"true","x":1}}', [oneOf("True"), "proof", "confirm", "acknowledged"], [
      unknown,
      "proof",
      "confirm",
      "x",
    ]],
    ['{"proof":{"type":"confirm","acknowledged":null}}', [oneOf("True"), "proof", "confirm", "acknowledged"]],
    ['{"proof":{"type":"webauthn.create"}}', [missing, "proof", "webauthn.create", "credential"]],
    [
      '{"proof":{"type":"webauthn.create","credential":{}}}',
      [missing, "proof", "webauthn.create", "credential", "id"],
      [missing, "proof", "webauthn.create", "credential", "rawId"],
      [missing, "proof", "webauthn.create", "credential", "type"],
      [missing, "proof", "webauthn.create", "credential", "response"],
    ],
    [
      '{"proof":{"type":"webauthn.create","credential":{"id":"","rawId":"a+b","type":"x","response":{}}}}',
      [noMatch("^[A-Za-z0-9_-]+$"), "proof", "webauthn.create", "credential", "id"],
      [noMatch("^[A-Za-z0-9_-]+$"), "proof", "webauthn.create", "credential", "rawId"],
      [oneOf("'public-key'"), "proof", "webauthn.create", "credential", "type"],
      [missing, "proof", "webauthn.create", "credential", "response", "clientDataJSON"],
      [missing, "proof", "webauthn.create", "credential", "response", "attestationObject"],
    ],
    [
      '{"proof":{"type":"webauthn.create","credential":{"id":"a","rawId":"a","type":"public-key","response":{"clientDataJSON":1,"attestationObject":"=","transports":["a",1]},"clientExtensionResults":[]}}}',
      [noString, "proof", "webauthn.create", "credential", "response", "clientDataJSON"],
      [noMatch("^[A-Za-z0-9_-]+$"), "proof", "webauthn.create", "credential", "response", "attestationObject"],
      [noString, "proof", "webauthn.create", "credential", "response", "transports", 1],
      [noMap, "proof", "webauthn.create", "credential", "clientExtensionResults"],
    ],
    ["{}", [missing, "proof"]],
    ['{"proof":{"type":"confirm","acknowledged":true},"x":1}', [unknown, "x"]],
  ],
}
