/** Shows the signed-in person: the home of a visitor who has no other. */
import type { JSX } from "preact"
import { Page } from "../parts/Page.tsx"
import { When } from "../parts/When.tsx"
import { session } from "../Visitor.ts"

const Welcome = (): JSX.Element => {
  const one = session.value!
  return (
    <Page
      title={`Welcome${
        one.person?.display_name ? `, ${one.person.display_name}` : one.account ? `, ${one.account.name}` : ""
      }`}
    >
      <dl>
        {one.account === null ? null : (
          <>
            <div>
              <dt>Mail account</dt>
              <dd>{one.account.email}</dd>
            </div>
            <div>
              <dt>Plan</dt>
              <dd>{one.account.plan}</dd>
            </div>
          </>
        )}
        {one.person === null ? null : (
          <>
            <div>
              <dt>Email</dt>
              <dd>{one.person.email ?? "none"}</dd>
            </div>
            <div>
              <dt>Institutions</dt>
              <dd>
                {one.institutions.length === 0
                  ? "none: ask an administrator of your institution for an invitation"
                  : one.institutions.map(({ institution_id, name, roles }) =>
                    `${name ?? institution_id} (${roles.join(", ")})`
                  )
                    .join(", ")}
              </dd>
            </div>
            <div>
              <dt>Projects that you own</dt>
              <dd>{one.projects.map(({ name, project_id }) => name ?? project_id).join(", ") || "none"}</dd>
            </div>
          </>
        )}
        <div>
          <dt>Signed in</dt>
          <dd>
            <When at={one.session!.authenticated_at} exact never="at an unknown time" />
          </dd>
        </div>
        <div>
          <dt>The session ends</dt>
          <dd>
            <When at={one.session!.ends_at} exact />
          </dd>
        </div>
      </dl>
    </Page>
  )
}
export default Welcome
