/** Ends a declined proposal: a registration withdraws its project, a launch leaves it registered. */
import { Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { projectRows } from "./Rows.ts"
import { withdrawLocked } from "./WithdrawProject.ts"

export const declineProposal = Effect.gen(function* () {
  const { sql } = yield* Database
  const timers = yield* Timers
  const withdraw = yield* withdrawLocked
  const projects = projectRows(sql)
  const requests = requestRows(sql)

  return Effect.fnUntraced(function* (request: RequestRow, personId: PersonId, reason: string) {
    const project = (yield* projects.lock(request.project_id!))!
    yield* requests.change(request, { state: "declined" })
    yield* timers.set(request.id, [])
    if (request.kind === "website") yield* withdraw(project, personId, reason)
    else if (project.state === "launch_proposed") yield* projects.change(project, { state: "registered" })
    else if (project.held_from === "launch_proposed") {
      yield* projects.change(project, { state: "held", heldReason: project.held_reason, heldFrom: "registered" })
    }
  })
})
