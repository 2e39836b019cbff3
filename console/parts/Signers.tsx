/** The people who may sign a request that waits, and why others who hold a role of it may not. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"

type Signers = NonNullable<AnswerOf<"getPolicyReview">["signers"]>
type Signer = Signers["people"][number]

const refusals: Readonly<Record<NonNullable<Signer["refusal"]>, string>> = {
  author: "asked for it",
  signed: "has signed it in another role",
  own_authenticators: "it is about their own authenticators",
  own_access: "it is about their own Access",
  not_effective: "the membership does not count now: it is not accepted, suspended, not begun or over",
  not_independent:
    "not independent of the author or of a signer: one made or approved the other's membership, person or " +
    "identity in the last 90 days",
}

const roleOf = ({ role, stands_in }: Signer) => stands_in ? `${role}, as an operator in one's place` : role

const operatorsOf = (count: number) => count === 1 ? "one operator" : `${count} operators`

const Able = ({ names, of: { operators, people } }: {
  readonly of: Signers
  readonly names: (id: string) => string
}): JSX.Element => {
  const able = people.filter(({ refusal }) => refusal === null)
  // Only an operator is told which operators may sign; others read how many.
  const unnamed = operators > 0 && !able.some(({ role, stands_in }) => stands_in || role === "operator")
  if (able.length === 0 && !unnamed) {
    return (
      <p>Nobody can sign it as things are. It needs another holder of the role who is independent of its author.</p>
    )
  }
  return (
    <ul>
      {able.map((one) => (
        <li key={`${one.person_id} ${one.role}`}>
          {names(one.person_id)} <span class="note">as {roleOf(one)}</span>
        </li>
      ))}
      {unnamed ? <li>{operatorsOf(operators)} of the installation</li> : null}
    </ul>
  )
}

export const Signers = ({ names, of }: {
  readonly of: Signers
  readonly names: (id: string) => string
}): JSX.Element => {
  const refused = of.people.filter(({ refusal }) => refusal !== null)
  return (
    <>
      <h3>Who may sign it now</h3>
      <Able names={names} of={of} />
      {refused.length === 0 ? null : (
        <details>
          <summary>Who holds a role of it and may not sign</summary>
          <ul>
            {refused.map((one) => (
              <li key={`${one.person_id} ${one.role}`}>
                {names(one.person_id)} <span class="note">({one.role})</span>: {refusals[one.refusal!]}
              </li>
            ))}
          </ul>
        </details>
      )}
      {of.more === 0 ? null : <p class="note">And {of.more} more who hold a role of it.</p>}
    </>
  )
}
