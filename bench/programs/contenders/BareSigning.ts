/**
 * The yardstick of signing: RS256 over the payloads that the program would sign, from memory, and nothing else. An
 * order is a line of JSON: how, and how many at once. The last signature of each order is verified.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { CompactSign } from "jose"
import { createVerify, generateKeyPairSync, sign } from "node:crypto"
import postgres from "postgres"
import process from "node:process"
import { createInterface } from "node:readline"
import { claimsOf } from "../../../services/lifecycle/EventSigner.ts"
import { signing as asTheProgram } from "../../../services/lifecycle/Keys/KeyGeneration.ts"
import { say, variable } from "../ChildProtocol.ts"

export type Way = "node:crypto" | "jose" | "the program's way"

export interface Order {
  readonly way: Way
  readonly atOnce: number
}

const sql = postgres(variable("DATABASE_URL"), { max: 1, onnotice: () => {}, types: { bigint: postgres.BigInt } })
const events = await sql<Array<Parameters<typeof claimsOf>[0]>>`
  select id::text as id, project_id, epoch, position, digest, prev_digest, kind, txn::text as txn, sub_id, payload,
    created_at
  from lifecycle_events order by project_id, position`
await sql.end()
const payloads = events.map((event) => JSON.stringify(claimsOf(event, "http://127.0.0.1/lifecycle")))

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const header = { alg: "RS256", typ: "secevent+jwt", kid: "k".repeat(43) }
const encoder = new TextEncoder()
const encoded = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64url")
const head = encoded(JSON.stringify(header))
const own = asTheProgram(header.kid, privateKey)

const signing: Readonly<Record<Way, (payload: string) => Promise<string>>> = {
  "the program's way": (payload) => own(header.typ, payload),
  "node:crypto": (payload) =>
    new Promise((resolve, reject) => {
      const input = `${head}.${encoded(payload)}`
      sign("sha256", encoder.encode(input), privateKey, (error, signature) => {
        if (error === null) resolve(`${input}.${encoded(signature)}`)
        else reject(error)
      })
    }),
  jose: (payload) => new CompactSign(encoder.encode(payload)).setProtectedHeader(header).sign(privateKey),
}

const run = async ({ atOnce, way }: Order) => {
  let next = 0
  let last = ""
  const worker = async () => {
    while (next < payloads.length) last = await signing[way](payloads[next++]!)
  }
  const from = performance.now()
  await Promise.all(Array.from({ length: atOnce }, worker))
  const seconds = (performance.now() - from) / 1_000
  const [a, b, signature] = last.split(".")
  const good = createVerify("sha256").update(`${a}.${b}`).verify(publicKey, Buffer.from(signature!, "base64url"))
  if (!good) throw new Error(`${way}: the signature does not verify`)
  say("signed", { seconds, count: payloads.length })
}

createInterface({ input: process.stdin }).on("line", (line) => void run(JSON.parse(line)))
  .on("close", () => process.exit(0))
say("ready", {})
