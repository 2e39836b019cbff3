/** The members of an institution, a row for each role, and the way to ask for a change. */
import type { JSX } from "preact"
import { ask } from "../../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../../contract/EndpointTypes.ts"
import { useDraft } from "../../Drafts.ts"
import { Badge, type Tone } from "../../parts/Badge.tsx"
import { DialogButton } from "../../parts/Dialog.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { SelectField } from "../../parts/Form.tsx"
import { LostAuthenticators } from "../../parts/LostAuthenticators.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../../parts/NextPage.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"
import { effective, StateBadge } from "../../parts/StateBadge.tsx"
import { Table } from "../../parts/Table.tsx"
import { filterOf } from "../../parts/TextFilter.tsx"
import { When } from "../../parts/When.tsx"
import { useResource } from "../../Resource.ts"
import { session } from "../../Visitor.ts"

/** An institution, and whether the visitor is a Sponsor or an effective administrator there. */
export interface Shown {
  readonly institution: string
  readonly decides: boolean
}

type Member = AnswerOf<"listMembers">["items"][number]
type Asked = RequestOf<"changeMembership">["payload"]

/** One role of one member. */
interface Seat {
  readonly member: Member
  readonly of: Member["memberships"][number]
}

const tones: Readonly<Record<Seat["of"]["state"], Tone>> = {
  active: "good",
  invited: "wait",
  suspended: "warn",
  ended: "off",
}

const nameOf = ({ display_name, person_id }: Member): string => display_name ?? person_id

const roles = [["member", "Member"], ["sponsor", "Sponsor"], ["administrator", "Administrator"]] as const
const states = [["active", "Active"], ["suspended", "Suspended"], ["ended", "Ended"]] as const

const Change = ({ close, institution, seat: { member, of } }: {
  readonly institution: string
  readonly seat: Seat
  readonly close: () => void
}): JSX.Element => {
  const name = `membership ${member.person_id} ${of.role}`
  const draft = useDraft<{ role: Asked["role"]; state: Asked["state"] }>(`${name} asked`, {
    role: of.role,
    state: of.state === "active" ? "suspended" : "active",
  })
  const { role, state } = draft.value.value
  return (
    <ReasonForm
      name={name}
      close={close}
      done={() => {}}
      submit="Ask for this change"
      said="The change is asked for. A Sponsor and an administrator decide."
      write={(reason, key) =>
        ask("changeMembership", {
          params: { institution_id: institution },
          payload: { person_id: member.person_id, role, state, reason },
        }, { key })}
    >
      <p>
        {nameOf(member)} is {of.role}, {of.state}. Two people other than you decide, a Sponsor and an administrator.
      </p>
      <SelectField
        label="Role"
        value={role}
        options={roles}
        onChange={(role) => draft.set({ role: role as Asked["role"] })}
      />
      <SelectField
        label="State of that role"
        value={state}
        options={states}
        onChange={(state) => draft.set({ state: state as Asked["state"] })}
      />
    </ReasonForm>
  )
}

/** What a Sponsor or an administrator may ask for; authenticators are removed by what others sign. */
const SeatActions = ({ institution, seat }: { readonly institution: string; readonly seat: Seat }): JSX.Element => {
  const { member, of } = seat
  const own = session.value?.person?.person_id === member.person_id
  return (
    <div class="actions">
      <DialogButton
        name={`membership ${member.person_id} ${of.role}`}
        label="Change…"
        title={`Change what ${nameOf(member)} is here`}
      >
        {(close) => <Change close={close} institution={institution} seat={seat} />}
      </DialogButton>
      {of.effective && !own
        ? (
          <LostAuthenticators
            institution={institution}
            name={`lost authenticators ${member.person_id} ${of.role}`}
            person={member.person_id}
            words={nameOf(member)}
          />
        )
        : null}
    </div>
  )
}

const Seats = ({ decides, institution, of }: Shown & { readonly of: ReadonlyArray<Member> }): JSX.Element => (
  <Table
    caption="Members with their roles"
    rows={of.flatMap((member) => member.memberships.map((one) => ({ member, of: one })))}
    keyOf={({ member, of }) => `${member.person_id} ${of.role}`}
    empty={emptyPage("members", "The institution has no members yet.")}
    columns={[
      { head: "Person", cell: ({ member }) => nameOf(member) },
      { head: "Role", cell: ({ of }) => of.role },
      { head: "State", cell: ({ of }) => <Badge tone={tones[of.state]}>{of.state}</Badge> },
      {
        head: "In effect",
        cell: ({ of }) => <StateBadge of={of.effective ? "effective" : "not_effective"} states={effective} />,
      },
      { head: "Accepted", cell: ({ of }) => <When at={of.accepted_at} never="not recorded" /> },
      { head: "Expires", cell: ({ of }) => <When at={of.expires_at} /> },
      ...(decides
        ? [{
          head: "Change",
          cell: (seat: Seat) => <SeatActions institution={institution} seat={seat} />,
        }]
        : []),
    ]}
  />
)

export const Members = ({ decides, institution }: Shown): JSX.Element => {
  const after_id = filterOf("members")
  const members = useResource(
    `members ${institution} ${after_id}`,
    (signal) =>
      ask("listMembers", {
        params: { institution_id: institution },
        query: { after_id, limit: String(pageSize) },
      }, { signal }),
  )
  const found = members.value.value?.items
  return (
    <section aria-labelledby="members">
      <h2 id="members">Members</h2>
      <Failure of={members.failure} retry={members.reload} />
      {found === undefined ? null : (
        <>
          <Seats decides={decides} institution={institution} of={found} />
          <NextPage last={lastOf(found, ({ person_id }) => person_id)} name="members" words="members" />
        </>
      )}
    </section>
  )
}
