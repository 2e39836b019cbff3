/** `TRANSFER_HISTORIES`: number of histories; `task test:long` runs many more. */
import { layer } from "@effect/vitest"
import process from "node:process"
import { histories } from "./TransferHistories.ts"
import { fixture } from "./TransferFixture.ts"

const count = Number(process.env["TRANSFER_HISTORIES"] ?? 80)

layer(fixture(), { excludeTestServices: true, timeout: "2 minutes" })("histories", (it) => {
  it.effect(
    `${count} random histories give the model's answers and rows`,
    () => histories(count),
    { timeout: 120_000 + count * 1_000 },
  )
})
