/**
 * Every refusal says more than its title: each place that makes a problem gives a detail, or its code has one for all
 * (Details.ts).
 */
import { assert, describe, it } from "@effect/vitest"
import type { SchemaAST } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import * as Accounts from "../../../../schemas/problems/AccountProblems.ts"
import * as Floor from "../../../../schemas/problems/HttpProblems.ts"
import * as Idempotency from "../../../../schemas/problems/IdempotencyProblems.ts"
import * as Identity from "../../../../schemas/problems/IdentityProblems.ts"
import * as Notifications from "../../../../schemas/problems/NotificationProblems.ts"
import * as Streams from "../../../../schemas/problems/StreamProblems.ts"
import * as Transfers from "../../../../schemas/problems/TransferProblems.ts"
import * as Webhooks from "../../../../schemas/problems/WebhookProblems.ts"
import { detailOf } from "../../../../src/http/edge/Details.ts"

/** Members that problems of any code may have. */
const members = {
  state: "open",
  allowed: ["closed"],
  current_version: 2,
  retry_after: 3,
  limit: 4,
  window_seconds: 60,
  job_id: "j",
  acr_values: "urn:service:aal2",
  max_age: 300,
  audiences: ["a"],
  properties: ["iss"],
  blockers: [{}],
  scope: "events.read",
  project_environment: "staging",
}

const modules = [Accounts, Floor, Idempotency, Identity, Notifications, Streams, Transfers, Webhooks]
const codes = new Map(
  modules.flatMap((exported) => Object.entries<object>(exported)).flatMap(([name, problem]) => {
    const { fields } = problem as { readonly fields?: { readonly code: { readonly ast: SchemaAST.AST } } }
    const ast = fields?.code.ast
    return ast?._tag === "Literal" ? [[name, String(ast.literal)] as const] : []
  }),
)

const files = ["services", "src"].flatMap((directory) =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${directory}/${name}`)
)

/** The text between the parenthesis that opens at `from` and its closing one. */
const inParentheses = (text: string, from: number): string => {
  let depth = 0
  for (let i = from; i < text.length; i++) {
    if (text[i] === "(") depth++
    if (text[i] === ")" && --depth === 0) return text.slice(from + 1, i)
  }
  return text.slice(from)
}

const silent = files.flatMap((file) => {
  const text = readFileSync(file, "utf8")
  return [...text.matchAll(/\bnew (?:[A-Z][A-Za-z]*\.)?([A-Z][A-Za-z]+)\(/g)].flatMap(([made, name], n, all) => {
    const code = codes.get(name!)
    const from = all[n]!.index + made.length - 1
    if (code === undefined || /\bdetail\b/.test(inParentheses(text, from))) return []
    const said = detailOf({ ...members, code })
    return said === undefined ? [`${file}: ${name}`] : []
  })
})

describe("a refusal", () => {
  it("is found in every module of problems", () => {
    assert.isAbove(codes.size, 60)
    assert.include([...codes.values()], "environment_mismatch")
  })
  it("has a detail wherever it is made", () => assert.deepStrictEqual(silent, []))
})
