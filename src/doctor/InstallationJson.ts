/** The state of the installation as JSON, the same over HTTP and from `installation show --json`. */
import type { InstallationState } from "../../schemas/identity/InstallationView.ts"
import type { InstallationRow } from "../../services/platform/database/Installation.ts"
import { noteOf } from "./InstallationCheck.ts"

const timeOf = (at: Date | null) => at?.toISOString() ?? null

export const installationJson = (row: InstallationRow): InstallationState => {
  const { epoch, held_reason, held_since, lost_since, missing, opened_at, state } = row
  const { remedy, says } = held_reason === null ? { says: null, remedy: null } : noteOf(held_reason)
  return {
    epoch,
    state,
    held_reason,
    says,
    remedy,
    held_since: timeOf(held_since),
    lost_since: state === "held" ? timeOf(lost_since ?? held_since) : null,
    missing: missing.map(({ epoch = null, first, last, project_id = null, stream }) => ({
      epoch,
      first,
      last,
      project_id,
      stream,
    })),
    opened_at: timeOf(opened_at),
  }
}
