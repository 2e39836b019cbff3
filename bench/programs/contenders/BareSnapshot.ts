/**
 * The yardstick of a snapshot: select the state, write it as JSON, sign it; each line on standard input asks for one.
 */
import { CompactSign } from "jose"
import { generateKeyPairSync } from "node:crypto"
import postgres from "postgres"
import process from "node:process"
import { createInterface } from "node:readline"
import { say, variable } from "../ChildProtocol.ts"

const sql = postgres(variable("DATABASE_URL"), { max: 1, onnotice: () => {} })
const project = variable("PROJECT_ID")
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const encoder = new TextEncoder()

const make = async () => {
  const from = performance.now()
  const state = await sql`select key, value from lifecycle_state where project_id = ${project} order by key collate "C"`
  const signed = await new CompactSign(encoder.encode(JSON.stringify({ state })))
    .setProtectedHeader({ alg: "RS256", typ: "lifecycle-snapshot+jwt" }).sign(privateKey)
  say("made", { seconds: (performance.now() - from) / 1_000, facts: state.length, bytes: signed.length })
}

createInterface({ input: process.stdin }).on("line", () => void make()).on("close", () => process.exit(0))
await sql`select 1`
say("ready", {})
