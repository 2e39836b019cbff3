/** The histories of `task test`, sixty times as many: some four minutes of a core. TRANSFER_HISTORIES asks for more. */
import { layer } from "@effect/vitest"
import process from "node:process"
import { histories } from "../services/transfers/TransferHistories.ts"
import { fixture } from "../services/transfers/TransferFixture.ts"

const count = Number(process.env["TRANSFER_HISTORIES"] ?? 5_000)

layer(fixture(), { excludeTestServices: true, timeout: "60 seconds" })("histories", (it) => {
  it.effect(
    `${count} random histories: every answer and every row matches the model`,
    () => histories(count),
    { timeout: 120_000 + count * 1_000 },
  )
})
