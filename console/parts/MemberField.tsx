/** A choice among the effective members of an institution, a page of them at a time. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useRef } from "preact/hooks"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useResource } from "../Resource.ts"
import { Failure } from "./Failure.tsx"
import { SelectField } from "./Form.tsx"

type Member = AnswerOf<"listMembers">["items"][number]

const most = 100

export const MemberField = ({ first = [], institution, label, onChange, value, without }: {
  readonly institution: string
  readonly label: string
  readonly value: string
  readonly onChange: (personId: string) => void
  /** Choices before the members. */
  readonly first?: ReadonlyArray<readonly [value: string, label: string]>
  /** Members who are not offered. */
  readonly without: ReadonlySet<string>
}): JSX.Element => {
  const after = useSignal<string | undefined>(undefined)
  const query = { limit: String(most), after_id: after.value }
  const page = useResource(
    `members to choose ${institution} ${after.value}`,
    (signal) => ask("listMembers", { params: { institution_id: institution }, query }, { signal }),
  )
  // Members of earlier pages stay offered.
  const pages = useRef(new Map<string | undefined, ReadonlyArray<Member>>())
  const found = page.value.value?.items
  if (found !== undefined) pages.current.set(after.value, found)
  const members = [...pages.current.values()].flat().filter(({ memberships, person_id }) =>
    !without.has(person_id) && memberships.some(({ effective }) => effective)
  )
  const options = [
    ...first,
    ...members.map(({ display_name, person_id }) => [person_id, display_name ?? person_id] as const),
  ]
  return (
    <>
      <Failure of={page.failure} retry={page.reload} />
      {found !== undefined && options.length === 0
        ? <p class="note">No member of the institution can be chosen.</p>
        : <SelectField label={label} value={value} options={options} onChange={onChange} />}
      {found === undefined || found.length < most ? null : (
        <button
          type="button"
          onClick={() => {
            after.value = found.at(-1)!.person_id
          }}
        >
          Offer more members
        </button>
      )}
    </>
  )
}
