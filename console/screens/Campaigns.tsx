/** Campaigns of an institution, and its Access whose review is overdue. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { go, type Params } from "../Location.ts"
import { useNames } from "../Names.ts"
import { Badge } from "../parts/Badge.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, TextField } from "../parts/Form.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { ProjectName } from "../parts/ProjectName.tsx"
import { ReasonDialog } from "../parts/ReasonDialog.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useProjectNames } from "../ProjectNames.ts"
import { useResource } from "../Resource.ts"
import { rolesIn } from "../Visitor.ts"

type Overdue = AnswerOf<"listOverdueReviews">["items"][number]

interface Of {
  readonly institution: string
}

const OpenForm = ({ close, institution }: Of & { readonly close: () => void }): JSX.Element => {
  const action = useAction()
  const draft = useDraft("campaign", { name: "", until: "", overdue: false })
  const { name, overdue, until } = draft.value.value
  return (
    <ReasonForm
      action={action}
      name="open campaign"
      close={close}
      done={() => {}}
      ready={name.trim() !== "" && until !== ""}
      submit="Open the campaign"
      said="The campaign is open. Owners of its projects are told by mail."
      write={async (reason, key) => {
        const { campaign_id } = await ask("openCampaign", {
          params: { institution_id: institution },
          payload: { name: name.trim(), deadline: new Date(until).toISOString(), overdue, reason },
        }, { key })
        go(`/console/institutions/${institution}/campaigns/${campaign_id}`)
      }}
    >
      <p>
        Owners of the projects say of every active Access whether it is still needed. Nothing is revoked by the campaign
        itself.
      </p>
      <TextField action={action} label="Name" name="name" value={name} onInput={(name) => draft.set({ name })} />
      <TextField
        action={action}
        label="Deadline"
        name="deadline"
        type="datetime-local"
        value={until}
        onInput={(until) => draft.set({ until })}
      />
      <CheckField
        label="Only Access whose review is overdue"
        checked={overdue}
        onChange={(overdue) => draft.set({ overdue })}
      />
    </ReasonForm>
  )
}

/** What a person who answers for an Access says of it: still needed, or to be revoked. */
const OverdueActions = ({ done, institution, of: { access_id, access_version }, who }: Of & {
  readonly of: Overdue
  readonly who: string
  readonly done: () => unknown
}): JSX.Element => {
  const params = { institution_id: institution, access_id }
  return (
    <div class="actions">
      <ReasonDialog
        name={`confirm ${access_id}`}
        label="Still needed…"
        title={`Confirm the Access of ${who}`}
        submit="Confirm it"
        said="The Access is confirmed."
        done={done}
        write={(reason, key) =>
          ask("confirmAccess", { params, payload: { expected_version: access_version, reason } }, { key })}
      >
        <p>You say that version {access_version} is still needed. It is no review, and changes nothing.</p>
      </ReasonDialog>
      <ReasonDialog
        name={`revoke ${access_id}`}
        label="Not needed…"
        title={`Propose that the Access of ${who} is revoked`}
        submit="Propose it"
        said="The revocation is proposed. An administrator decides."
        kind="stop"
        done={done}
        write={(reason, key) =>
          ask("proposeAccessRevocation", { params, payload: { expected_version: access_version, reason } }, { key })}
      >
        <p>An administrator other than you decides. Until then nothing changes.</p>
      </ReasonDialog>
    </div>
  )
}

/** What was done when an Access was last looked at. */
const looked: Readonly<Record<Overdue["last_review"]["kind"], string>> = {
  grant: "granted",
  review: "reviewed",
  confirmation: "confirmed",
}

const Overdue = ({ institution }: Of): JSX.Element => {
  const after_id = filterOf("overdue")
  const overdue = useResource(
    `overdue reviews ${institution} ${after_id}`,
    (signal) =>
      ask("listOverdueReviews", {
        params: { institution_id: institution },
        query: { after_id, limit: String(pageSize) },
      }, { signal }),
  )
  const found = overdue.value.value
  const projects = useProjectNames(institution, (found?.items ?? []).map(({ project_id }) => project_id))
  const roles = rolesIn(institution)
  const answers = roles.has("sponsor") || roles.has("administrator")
  return (
    <section aria-labelledby="overdue">
      <h2 id="overdue">Overdue reviews</h2>
      <Failure of={overdue.failure} retry={overdue.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Access whose review is overdue"
            rows={found.items}
            keyOf={({ access_id }) => access_id}
            empty={emptyPage("overdue", "Every active Access was granted, reviewed or confirmed within a year.")}
            columns={[
              {
                head: "Person",
                cell: ({ access_id, display_name, person_id }) => (
                  <a href={`/console/institutions/${institution}/access/${access_id}`}>{display_name ?? person_id}</a>
                ),
              },
              {
                head: "Project",
                cell: ({ project_id }) => <ProjectName id={project_id} name={projects(project_id)} />,
              },
              { head: "Role", cell: ({ role }) => role },
              {
                head: "Last looked at",
                cell: ({ last_review: { at, kind } }) => (
                  <>
                    {looked[kind]} <When at={at} exact />
                  </>
                ),
              },
              ...(answers
                ? [{
                  head: "Your word",
                  cell: (one: Overdue) => (
                    <OverdueActions
                      of={one}
                      institution={institution}
                      who={one.display_name ?? one.person_id}
                      done={overdue.reload}
                    />
                  ),
                }]
                : []),
            ]}
          />
          <NextPage last={found.next_after_id} name="overdue" words="overdue reviews" />
        </>
      )}
    </section>
  )
}

const Campaigns = ({ params }: { readonly params: Params }): JSX.Element => {
  const institution = params["institution_id"]!
  const after_id = filterOf("after")
  const campaigns = useResource(
    `campaigns ${institution} ${after_id}`,
    (signal) =>
      ask("listCampaigns", {
        params: { institution_id: institution },
        query: { after_id, limit: String(pageSize) },
      }, { signal }),
  )
  const found = campaigns.value.value?.items
  const names = useNames((found ?? []).map(({ opened_by }) => opened_by))
  return (
    <Page
      title="Campaigns"
      up={[`/console/institutions/${institution}`, "Institution"]}
      actions={rolesIn(institution).has("administrator")
        ? (
          <DialogButton name="open campaign" kind="main" label="Open a campaign…" title="Open a campaign">
            {(close) => <OpenForm institution={institution} close={close} />}
          </DialogButton>
        )
        : null}
    >
      <Failure of={campaigns.failure} retry={campaigns.reload} />
      {found === undefined ? null : (
        <>
          <Table
            caption="Campaigns"
            rows={found}
            keyOf={({ campaign_id }) => campaign_id}
            empty={emptyPage("after", "There was no campaign yet.")}
            columns={[
              {
                head: "Campaign",
                cell: ({ campaign_id, name }) => (
                  <a href={`/console/institutions/${institution}/campaigns/${campaign_id}`}>{name}</a>
                ),
              },
              {
                head: "State",
                cell: ({ state }) => <Badge tone={state === "open" ? "wait" : "off"}>{state}</Badge>,
              },
              { head: "Deadline", cell: ({ deadline }) => <When at={deadline} /> },
              {
                head: "Opened",
                cell: ({ opened_at, opened_by }) => (
                  <>
                    by {names(opened_by)}, <When at={opened_at} />
                  </>
                ),
              },
            ]}
          />
          <NextPage last={lastOf(found, ({ campaign_id }) => campaign_id)} name="after" words="campaigns" />
          <Overdue institution={institution} />
        </>
      )}
    </Page>
  )
}
export default Campaigns
