/** Ends an undecided proposal without carrying it out: a registration withdraws its project, a launch leaves it registered. */
import { Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { projectRows } from "./Rows.ts"
import { withdrawLocked } from "./WithdrawProject.ts"

export interface ProposalEnd {
  /** A reviewer declines it, or its author withdraws it. */
  readonly state: "declined" | "superseded"
  readonly personId: PersonId
  readonly reason: string
}

export const endProposal = Effect.gen(function* () {
  const { sql } = yield* Database
  const timers = yield* Timers
  const withdraw = yield* withdrawLocked
  const projects = projectRows(sql)
  const requests = requestRows(sql)

  return Effect.fnUntraced(function* (
    request: RequestRow,
    { personId, reason, state }: ProposalEnd,
  ) {
    const project = (yield* projects.lock(request.project_id!))!
    const ended = yield* requests.change(request, { state, by: personId, withdrawn: state === "superseded" })
    yield* timers.set(request.id, [])
    if (request.kind === "website") yield* withdraw(project, personId, reason)
    else if (project.state === "launch_proposed") yield* projects.change(project, { state: "registered" })
    else if (project.held_from === "launch_proposed") {
      yield* projects.change(project, { state: "held", heldReason: project.held_reason, heldFrom: "registered" })
    }
    return ended
  })
})
