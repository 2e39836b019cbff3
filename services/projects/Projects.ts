/**
 * Websites as projects (docs/requests.md): registered, launched, owned, withdrawn. Registering is not
 * provisioning: the provider's job waits for the review of the registration, and so does a launch.
 *
 * The methods that change something run in the caller's transaction. Order of locks: the project's turn, people,
 * institution, memberships, project, reviews, requests.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type * as Wire from "../../schemas/identity/Project.ts"
import type { ProjectEvents } from "../../schemas/identity/ProjectEvent.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type * as Problems from "../../schemas/problems/IdentityProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import type { Decision } from "../requests/PolicyReviews.ts"
import type { RequestRow } from "../requests/RequestRows.ts"
import { approveRegistration } from "./Projects/ApproveRegistration.ts"
import { changeOwner } from "./Projects/ChangeOwner.ts"
import { endProposal, type ProposalEnd } from "./Projects/EndProposal.ts"
import { type InstitutionPage, reading } from "./Projects/ProjectReading.ts"
import { launches } from "./Projects/Launches.ts"
import { projectLists, type ProjectPage } from "./Projects/ProjectLists.ts"
import { proposeLaunch } from "./Projects/ProposeLaunch.ts"
import { registerWebsite } from "./Projects/RegisterWebsite.ts"
import { requestableProjects } from "./Projects/RequestableProjects.ts"
import { withdrawProject } from "./Projects/WithdrawProject.ts"

export type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

interface OnProject {
  readonly personId: PersonId
  readonly projectId: ProjectId
}

export class Projects extends Context.Service<Projects, {
  /**
   * For an active owner, an operator, a Sponsor or an effective administrator; and, without the decisions, for a person
   * with active Access.
   */
  readonly read: (asked: OnProject) => Effect.Effect<Wire.Project, RoleFault | SqlError.SqlError>
  /** At most `limit` projects after `afterId`, ascending; for a Sponsor, an effective administrator or an operator. */
  readonly list: (
    page: InstitutionPage,
  ) => Effect.Effect<Wire.ListedProjects, RoleFault | SqlError.SqlError>
  /**
   * Projects to which an effective member of the institution may ask for Access, ascending: those that are not
   * withdrawn, to which it has no Access and for which no request of it waits.
   */
  readonly requestable: (
    page: InstitutionPage,
  ) => Effect.Effect<Wire.RequestableProjects, RoleFault | SqlError.SqlError>
  /** Launch proposals, newest first; for an active owner, an operator, a Sponsor or an effective administrator. */
  readonly launches: (page: ProjectPage) => Effect.Effect<Wire.ProjectLaunches, RoleFault | SqlError.SqlError>
  /** Owners by person, former ones included; for the same. */
  readonly owners: (page: ProjectPage) => Effect.Effect<Wire.ListedOwners, RoleFault | SqlError.SqlError>
  /** Lifecycle events, newest first; for an active owner, and for an operator with an active membership there. */
  readonly events: (page: ProjectPage) => Effect.Effect<ProjectEvents, RoleFault | SqlError.SqlError>
  /** By a Sponsor or an effective administrator. */
  readonly register: (
    asked: Wire.WebsiteRegistration & { readonly personId: PersonId; readonly institutionId: InstitutionId },
  ) => Effect.Effect<
    Wire.Website,
    RoleFault | Problems.OwnerNotActive | Problems.WebsiteExists | SqlError.SqlError,
    InTransaction
  >
  /** By an effective administrator or an active owner. The state is judged before the version. */
  readonly withdraw: (
    asked: Wire.Transition & OnProject & { readonly institutionId: InstitutionId },
  ) => Effect.Effect<
    Wire.WithdrawnWebsite,
    RoleFault | Problems.InvalidState | Problems.VersionConflict | SqlError.SqlError,
    InTransaction
  >
  /** By an active owner; a newer proposal supersedes the last one. */
  readonly proposeLaunch: (
    asked: Wire.LaunchCreate & OnProject,
  ) => Effect.Effect<
    Wire.LaunchProposal,
    | RoleFault
    | Problems.EnvironmentHeld
    | Problems.InvalidState
    | Problems.LaunchUrlUnverified
    | HTTPValidationError
    | SqlError.SqlError,
    InTransaction
  >
  /** By an effective administrator; changes nothing where the person is in that state already. */
  readonly changeOwner: (
    asked: Wire.OwnerChange & OnProject,
  ) => Effect.Effect<
    Wire.ProjectOwners,
    | RoleFault
    | Problems.Held
    | Problems.InvalidState
    | Problems.LastOwner
    | Problems.OwnerNotActive
    | SqlError.SqlError,
    InTransaction
  >
  /** Carries out a fully signed registration or launch. */
  readonly carryOut: (
    decision: Decision,
  ) => Effect.Effect<
    void,
    | Problems.EnvironmentHeld
    | Problems.InvalidState
    | Problems.PreviewChanged
    | Problems.VersionConflict
    | SqlError.SqlError,
    InTransaction
  >
  /** Ends an undecided registration (the project is withdrawn) or launch, which is declined or which its author withdraws. */
  readonly end: (
    request: RequestRow,
    how: ProposalEnd,
  ) => Effect.Effect<RequestRow, SqlError.SqlError, InTransaction>
  /** Checks a held launch again; called by its timer. */
  readonly settle: (request: RequestRow) => Effect.Effect<void, SqlError.SqlError, InTransaction>
}>()("bailiwick/services/projects/Projects") {
  static readonly layer = Layer.effect(
    Projects,
    Effect.gen(function* () {
      const { carryOut, settle } = yield* launches
      const approve = yield* approveRegistration
      const { list, read } = yield* reading
      return Projects.of({
        ...(yield* projectLists),
        read,
        list,
        requestable: yield* requestableProjects,
        register: yield* registerWebsite,
        withdraw: yield* withdrawProject,
        proposeLaunch: yield* proposeLaunch,
        changeOwner: yield* changeOwner,
        carryOut: (decision) => decision.request.kind === "website" ? approve(decision) : carryOut(decision),
        end: yield* endProposal,
        settle,
      })
    }),
  )
}
