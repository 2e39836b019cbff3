/** The services that may read a project's lifecycle: proposed by an owner, approved by an administrator, ended by either. */
import type { JSX } from "preact"
import { useAction } from "../../Action.ts"
import { ask, Refused } from "../../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../../contract/EndpointTypes.ts"
import { useDraft } from "../../Drafts.ts"
import { useNames } from "../../Names.ts"
import { ApprovalPreview, isRefused, useApprovalPreview } from "../../parts/ApprovalPreview.tsx"
import { Badge, type Tone } from "../../parts/Badge.tsx"
import { DialogButton } from "../../parts/Dialog.tsx"
import type { Facts } from "../../parts/Difference.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { CheckField, TextField } from "../../parts/Form.tsx"
import { Moved, useMoved } from "../../parts/Moved.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../../parts/NextPage.tsx"
import type { Project } from "../../parts/ProjectState.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"
import { Table } from "../../parts/Table.tsx"
import { filterOf } from "../../parts/TextFilter.tsx"
import { When } from "../../parts/When.tsx"
import { useResource } from "../../Resource.ts"
import { session } from "../../Visitor.ts"
import type { OnProject } from "./Owners.tsx"

type Grant = AnswerOf<"listLifecycleServiceGrants">[number]
type Capability = RequestOf<"proposeLifecycleServiceGrant">["payload"]["capabilities"][number]
type Deciding = Omit<OnProject, "done">

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

const tones: Readonly<Record<Grant["state"], Tone>> = {
  proposed: "wait",
  approved: "good",
  revoked: "off",
  expired: "off",
}

const capabilities: ReadonlyArray<readonly [Capability, string]> = [
  ["events.read", "read events"],
  ["snapshot.read", "read snapshots"],
  ["cursor.acknowledge", "acknowledge what it has installed"],
  ["stream.manage", "manage its streams"],
]

/** The zone in which the field's time is meant: the visitor's own. */
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

const Propose = ({ close, done, of }: Opened & { readonly of: Project }): JSX.Element => {
  const action = useAction()
  const draft = useDraft<{ service: string; issuer: string; until: string; may: ReadonlyArray<Capability> }>(
    "grant what",
    {
      service: "",
      issuer: "",
      until: "",
      may: ["events.read", "snapshot.read", "cursor.acknowledge"],
    },
  )
  const { issuer, may, service, until } = draft.value.value
  return (
    <ReasonForm
      action={action}
      name="grant"
      close={close}
      done={done}
      ready={service.trim() !== "" && may.length > 0}
      submit="Propose the grant"
      said="The grant is proposed. An administrator decides."
      write={(reason, key) =>
        ask("proposeLifecycleServiceGrant", {
          params: { project_id: of.project_id },
          payload: {
            service_id: service.trim(),
            service_issuer: issuer.trim() === "" ? null : issuer.trim(),
            capabilities: may,
            environment: of.environment,
            expires_at: until === "" ? null : new Date(until).toISOString(),
            reason,
          },
        }, { key })}
    >
      <TextField
        action={action}
        autofocus
        label="Client id of the service"
        name="service_id"
        value={service}
        onInput={(service) => draft.set({ service })}
      />
      <TextField
        action={action}
        label="Issuer of the service"
        name="service_issuer"
        required={false}
        hint="Empty where this installation takes tokens of services from one issuer only."
        value={issuer}
        onInput={(issuer) => draft.set({ issuer })}
      />
      <TextField
        action={action}
        label={`Ends at (${zone})`}
        name="expires_at"
        type="datetime-local"
        required={false}
        hint="In a year at the latest; empty for no end."
        value={until}
        onInput={(until) => draft.set({ until })}
      />
      <fieldset>
        <legend>The service may</legend>
        {capabilities.map(([one, words]) => (
          <CheckField
            key={one}
            label={words}
            checked={may.includes(one)}
            onChange={(checked) => draft.set({ may: checked ? [...may, one] : may.filter((other) => other !== one) })}
          />
        ))}
      </fieldset>
    </ReasonForm>
  )
}

/** What a decider compares, in words. */
const factsOf = (of: Grant): Facts => ({
  State: of.state,
  "In effect": of.effective.replaceAll("_", " "),
  May: of.capabilities.join(", "),
  Expires: of.expires_at ?? "never",
  Version: String(of.version),
})

/** A grant as it is now. One alone cannot be asked for: it is on the page of grants that it was on before. */
const grantNow = async ({ id, project_id }: Grant, signal: AbortSignal): Promise<Grant> => {
  const asked = { params: { project_id }, query: { after_id: filterOf("grants"), limit: String(pageSize) } }
  const found = (await ask("listLifecycleServiceGrants", asked, { signal })).find((one) => one.id === id)
  if (found === undefined) throw new Refused("not_found", 404, { detail: "The grant is not in this list any more." })
  return found
}

const DecisionForm = ({ close, decision, done, of }: Opened & {
  readonly of: Grant
  readonly decision: "approve" | "revoke"
}): JSX.Element => {
  const action = useAction()
  const approves = decision === "approve"
  const params = { project_id: of.project_id, grant_id: of.id }
  const moved = useMoved(action, ["invalid_state", "version_conflict"], done)
  const preview = useApprovalPreview({
    name: `${decision} ${of.id} ${of.version}`,
    asked: approves
      ? (reason, key, signal) => {
        const payload = { expected_version: of.version, reason }
        return ask("approveLifecycleServiceGrant", { params, query: { dry_run: true }, payload }, { key, signal })
      }
      : undefined,
  })
  return (
    <ReasonForm
      action={action}
      name={`${decision} ${of.id}`}
      close={close}
      done={done}
      kind={approves ? "main" : "stop"}
      ready={!moved && !isRefused(preview)}
      submit={approves ? "Approve" : "Revoke"}
      said={approves ? "The service may read the project's lifecycle." : "The grant has ended."}
      write={(reason, key) =>
        approves
          ? ask("approveLifecycleServiceGrant", { params, payload: { expected_version: of.version, reason } }, { key })
          : ask("revokeLifecycleServiceGrant", { params, payload: { reason } }, { key })}
    >
      <p>
        <code>{of.service_id}</code> of {of.service_issuer}: {of.capabilities.join(", ")}. “{of.reason}”
      </p>
      {moved
        ? null
        : approves
        ? <p class="note">You approve version {of.version}, as it is on screen.</p>
        : <p class="note">It takes effect at once, and cannot be undone.</p>}
      {moved
        ? (
          <Moved
            thing="grant"
            before={of}
            version={`${of.id} ${of.version}`}
            facts={factsOf}
            read={(signal) => grantNow(of, signal)}
          />
        )
        : null}
      {moved || !approves ? null : <ApprovalPreview of={preview} />}
    </ReasonForm>
  )
}

const Decisions = ({ administrator, done, grant, owner }: Deciding & {
  readonly grant: Grant
  readonly done: () => unknown
}): JSX.Element => {
  const me = session.value?.person?.person_id
  const open = grant.state === "proposed"
  if (!open && grant.state !== "approved") return <span class="note">has ended</span>
  return (
    <div class="actions">
      {open && administrator && grant.proposed_by !== me
        ? (
          <DialogButton name={`approve ${grant.id}`} kind="main" label="Approve…" title="Approve the service grant">
            {(close) => <DecisionForm close={close} decision="approve" done={done} of={grant} />}
          </DialogButton>
        )
        : null}
      {open && !administrator ? <span class="note">waits for an administrator</span> : null}
      {administrator || owner
        ? (
          <DialogButton name={`revoke ${grant.id}`} label="Revoke…" title="Revoke the service grant">
            {(close) => <DecisionForm close={close} decision="revoke" done={done} of={grant} />}
          </DialogButton>
        )
        : null}
    </div>
  )
}

const GrantTable = ({ done, grants, ...deciding }: Deciding & {
  readonly grants: ReadonlyArray<Grant>
  readonly done: () => unknown
}): JSX.Element => {
  const names = useNames(grants.flatMap(({ approved_by, proposed_by }) => [proposed_by, approved_by ?? proposed_by]))
  return (
    <Table
      caption="Service grants, oldest first"
      rows={grants}
      keyOf={({ id }) => id}
      empty={emptyPage("grants", "No service may read the project's lifecycle yet. An owner proposes one.")}
      columns={[
        { head: "Service", cell: ({ service_id }) => <code>{service_id}</code> },
        { head: "May", cell: ({ capabilities }) => capabilities.join(", ") },
        { head: "Decided", cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
        {
          head: "In effect",
          cell: ({ effective }) => (
            <Badge tone={effective === "effective" ? "good" : "off"}>{effective.replaceAll("_", " ")}</Badge>
          ),
        },
        {
          head: "By",
          cell: ({ approved_by, expires_at, proposed_at, proposed_by }) => (
            <>
              proposed by {names(proposed_by)} <When at={proposed_at} />
              {approved_by === null ? "" : `, approved by ${names(approved_by)}`}
              {expires_at === null ? null : (
                <>
                  , expires <When at={expires_at} />
                </>
              )}
            </>
          ),
        },
        { head: "Decide", cell: (grant) => <Decisions {...deciding} done={done} grant={grant} /> },
      ]}
    />
  )
}

export const ServiceGrants = (deciding: Deciding): JSX.Element => {
  const { of, owner } = deciding
  const { project_id } = of
  const after_id = filterOf("grants")
  const grants = useResource(
    `grants ${project_id} ${after_id}`,
    (signal) =>
      ask("listLifecycleServiceGrants", { params: { project_id }, query: { after_id, limit: String(pageSize) } }, {
        signal,
      }),
  )
  const found = grants.value.value
  return (
    <section aria-labelledby="grants">
      <div class="head">
        <h2 id="grants">Service grants</h2>
        {!owner || of.state === "withdrawn"
          ? null
          : (
            <DialogButton name="grant" label="Propose a grant…" title="Let a service read the project's lifecycle">
              {(close) => <Propose close={close} done={grants.reload} of={of} />}
            </DialogButton>
          )}
      </div>
      <Failure of={grants.failure} retry={grants.reload} />
      {found === undefined ? null : (
        <>
          <GrantTable {...deciding} done={grants.reload} grants={found} />
          <NextPage last={lastOf(found, ({ id }) => id)} name="grants" words="grants" />
        </>
      )}
    </section>
  )
}
