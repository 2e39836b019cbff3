/** One campaign: how far it is, its items with their answers, who may answer beside the owners, and its end. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useMemo } from "preact/hooks"
import { useAction } from "../Action.ts"
import { ask, Refused } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { type Params, setQuery } from "../Location.ts"
import { useNames } from "../Names.ts"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { SelectField, TextField } from "../parts/Form.tsx"
import { MemberField } from "../parts/MemberField.tsx"
import { Moved, useMoved } from "../parts/Moved.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { ProjectName } from "../parts/ProjectName.tsx"
import { ReasonDialog } from "../parts/ReasonDialog.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { exactly, When } from "../parts/When.tsx"
import { useProjectNames } from "../ProjectNames.ts"
import { useResource } from "../Resource.ts"
import { rolesIn } from "../Visitor.ts"

type Found = AnswerOf<"getCampaign">
type Item = AnswerOf<"listCampaignItems">["items"][number]

const states: Readonly<Record<Item["state"], readonly [tone: Tone, words: string]>> = {
  open: ["wait", "open"],
  confirmed: ["good", "confirmed"],
  proposed_for_revocation: ["warn", "proposed for revocation"],
  withdrawn: ["off", "withdrawn: the Access changed"],
  unanswered: ["bad", "unanswered"],
}

const nobody = "nobody"

const DelegateForm = ({ close, done, institution, of }: {
  readonly of: Item
  readonly institution: string
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const chosen = useSignal<string>(of.delegate_person_id ?? nobody)
  const { campaign_id, item_id, person_id } = of
  return (
    <ReasonForm
      name={`delegate ${item_id}`}
      close={close}
      done={done}
      submit="Delegate"
      said={chosen.value === nobody ? "Nobody answers beside the owners any more." : "The item is delegated."}
      write={(reason, key) =>
        ask("delegateCampaignItem", {
          params: { institution_id: institution, campaign_id, item_id },
          payload: { person_id: chosen.value === nobody ? null : chosen.value, reason },
        }, { key })}
    >
      <p>The delegate may answer beside the owners of the project.</p>
      <MemberField
        first={[[nobody, "Nobody"]]}
        institution={institution}
        label="Delegate"
        value={chosen.value}
        onChange={(one) => {
          chosen.value = one
        }}
        without={new Set([person_id])}
      />
    </ReasonForm>
  )
}

/** A time as a field of the visitor's own zone takes it: `2026-12-24T18:00`. */
const localTime = (at: string): string => {
  const time = new Date(at)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** What an administrator compares before the deadline moves. */
const factsOf = ({ deadline, state }: Found) => ({ Deadline: exactly(deadline, true), State: state })

const RescheduleForm = ({ close, done, institution, of }: {
  readonly of: Found
  readonly institution: string
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  // The page may be read anew while the form is open.
  const seen = useMemo(() => of, [])
  const draft = useDraft("deadline", { until: localTime(seen.deadline) })
  const { until } = draft.value.value
  const { campaign_id } = seen
  const moved = useMoved(action, ["invalid_state"], done)
  const read = (signal?: AbortSignal) =>
    ask("getCampaign", { params: { institution_id: institution, campaign_id } }, signal === undefined ? {} : { signal })
  /** Refuses to overwrite a deadline that another administrator has set meanwhile; the API takes no version. */
  const mustStand = async (wanted: string) => {
    const { deadline } = await read()
    // A press that is repeated finds what the first one did.
    if (deadline !== seen.deadline && Date.parse(deadline) !== Date.parse(wanted)) {
      throw new Refused("invalid_state", 409, { detail: "The deadline has moved since you opened this." })
    }
  }
  return (
    <ReasonForm
      action={action}
      name="reschedule campaign"
      close={close}
      done={done}
      ready={until !== "" && until !== localTime(seen.deadline) && !moved}
      submit="Move the deadline"
      said="The deadline is moved."
      write={async (reason, key) => {
        const deadline = new Date(until).toISOString()
        await mustStand(deadline)
        await ask("rescheduleCampaign", {
          params: { institution_id: institution, campaign_id },
          payload: { deadline, reason },
        }, { key })
      }}
    >
      <p>Those who answer are told again before the new deadline.</p>
      <TextField
        action={action}
        label="New deadline"
        name="deadline"
        type="datetime-local"
        value={until}
        onInput={(until) => draft.set({ until })}
      />
      {moved
        ? (
          <Moved
            thing="campaign"
            before={seen}
            version={`${campaign_id} ${seen.deadline}`}
            facts={factsOf}
            read={read}
          />
        )
        : null}
    </ReasonForm>
  )
}

const Actions = ({ done, institution, of }: {
  readonly of: Found
  readonly institution: string
  readonly done: () => unknown
}): JSX.Element => (
  <>
    <DialogButton name="reschedule campaign" label="Move the deadline…" title="Move the campaign's deadline">
      {(close) => <RescheduleForm of={of} institution={institution} close={close} done={done} />}
    </DialogButton>
    <ReasonDialog
      name="close campaign"
      label="Close it…"
      title="Close the campaign"
      submit="Close the campaign"
      said="The campaign is closed."
      kind="stop"
      done={done}
      write={(reason, key) =>
        ask("closeCampaign", {
          params: { institution_id: institution, campaign_id: of.campaign_id },
          payload: { reason },
        }, { key })}
    >
      <p>What is not answered stays unanswered. Nothing is revoked.</p>
    </ReasonDialog>
  </>
)

const Facts = ({ of, names }: { readonly of: Found; readonly names: (id: string) => string }): JSX.Element => (
  <dl>
    <div>
      <dt>State</dt>
      <dd>
        <Badge tone={of.state === "open" ? "wait" : "off"}>{of.state}</Badge>
      </dd>
    </div>
    <div>
      <dt>Deadline</dt>
      <dd>
        <When at={of.deadline} exact />
      </dd>
    </div>
    <div>
      <dt>Opened</dt>
      <dd>
        by {names(of.opened_by)}, <When at={of.opened_at} />: “{of.reason}”
      </dd>
    </div>
    {of.closed === null ? null : (
      <div>
        <dt>Closed</dt>
        <dd>
          by {names(of.closed.person_id)}, <When at={of.closed.at} />: “{of.closed.reason}”
        </dd>
      </div>
    )}
    <div>
      <dt>Answered</dt>
      <dd>
        {of.items.confirmed + of.items.proposed_for_revocation} of {of.items.total}
      </dd>
    </div>
  </dl>
)

const Items = ({ changed, institution, of }: {
  readonly institution: string
  readonly of: Found
  readonly changed: () => unknown
}): JSX.Element => {
  const [state, after_id] = [filterOf("state"), filterOf("after")]
  const { campaign_id } = of
  const items = useResource(
    `campaign items ${campaign_id} ${state} ${after_id}`,
    (signal) =>
      ask("listCampaignItems", {
        params: { institution_id: institution, campaign_id },
        query: { after_id, state, limit: String(pageSize) },
      }, { signal }),
  )
  const found = items.value.value?.items
  const projects = useProjectNames(institution, (found ?? []).map(({ project_id }) => project_id))
  const names = useNames(
    (found ?? []).flatMap(({ answer, delegate_person_id }) =>
      [answer?.person_id, delegate_person_id].filter((id) => id != null)
    ),
  )
  const delegates = of.state === "open" && rolesIn(institution).has("administrator")
  const done = () => Promise.all([items.reload(), changed()])
  return (
    <section aria-labelledby="items">
      <h2 id="items">Access</h2>
      <div class="filters">
        <SelectField
          label="Show"
          value={state ?? "all"}
          onChange={(chosen) => setQuery({ state: chosen === "all" ? undefined : chosen, after: undefined })}
          options={[["all", "All"], ...Object.entries(states).map(([one, [, words]]) => [one, words] as const)]}
        />
      </div>
      <Failure of={items.failure} retry={items.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Access in this campaign"
            rows={found}
            keyOf={({ item_id }) => item_id}
            empty={emptyPage("after", "Nothing is in this state.")}
            columns={[
              {
                head: "Person",
                cell: ({ access_id, display_name, person_id }) => (
                  <a href={`/console/institutions/${institution}/access/${access_id}`}>{display_name ?? person_id}</a>
                ),
              },
              {
                head: "Project",
                cell: ({ project_id, role }) => (
                  <>
                    <ProjectName id={project_id} name={projects(project_id)} />
                    <div class="note">{role}</div>
                  </>
                ),
              },
              {
                head: "State",
                cell: ({ revocation, state }) => (
                  <>
                    <Badge tone={states[state][0]}>{states[state][1]}</Badge>
                    {revocation === null ? null : <div class="note">the proposal is {revocation.state}</div>}
                  </>
                ),
              },
              {
                head: "Answer",
                cell: ({ answer, state }) =>
                  answer === null ? state === "open" ? "none yet" : "none" : (
                    <>
                      {names(answer.person_id)}, <When at={answer.at} />: “{answer.reason}”
                    </>
                  ),
              },
              {
                head: "Delegate",
                cell: (item) => (
                  <>
                    {item.delegate_person_id === null ? "nobody" : names(item.delegate_person_id)}
                    {delegates && item.state === "open"
                      ? (
                        <DialogButton name={`delegate ${item.item_id}`} label="Delegate…" title="Delegate the answer">
                          {(close) => <DelegateForm of={item} institution={institution} close={close} done={done} />}
                        </DialogButton>
                      )
                      : null}
                  </>
                ),
              },
            ]}
          />
          <NextPage last={lastOf(found, ({ item_id }) => item_id)} name="after" words="Access" />
        </>
      )}
    </section>
  )
}

const Campaign = ({ params }: { readonly params: Params }): JSX.Element => {
  const [institution, campaign_id] = [params["institution_id"]!, params["campaign_id"]!]
  const campaign = useResource(
    `campaign ${campaign_id}`,
    (signal) => ask("getCampaign", { params: { institution_id: institution, campaign_id } }, { signal }),
  )
  const found = campaign.value.value
  const names = useNames(
    found === undefined ? [] : [found.opened_by, ...found.closed === null ? [] : [found.closed.person_id]],
  )
  return (
    <Page
      title={found?.name ?? "Campaign"}
      up={[`/console/institutions/${institution}/campaigns`, "Campaigns"]}
      actions={found?.state === "open" && rolesIn(institution).has("administrator")
        ? <Actions of={found} institution={institution} done={campaign.reload} />
        : null}
    >
      <Failure of={campaign.failure} retry={campaign.reload} />
      {found === undefined ? null : (
        <>
          <Facts of={found} names={names} />
          <Items of={found} institution={institution} changed={campaign.reload} key={`${found.state}`} />
        </>
      )}
    </Page>
  )
}
export default Campaign
