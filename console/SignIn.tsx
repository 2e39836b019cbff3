/** Where a visitor signs in. */
import type { JSX } from "preact"
import { here } from "./Location.ts"
import { Page } from "./parts/Page.tsx"
import { session } from "./Visitor.ts"

/** The page to return to: the one that was asked for, also by way of the server's own redirect. */
const returnOf = (url: URL): string => url.searchParams.get("return") ?? url.pathname + url.search

export const SignIn = (): JSX.Element => {
  const issuers = session.value?.issuers ?? []
  const to = returnOf(here.value)
  return (
    <Page title="Sign in">
      {issuers.length === 0
        ? (
          <p>
            This installation has no sign-in for the console. Its operator configures one by{" "}
            <code>CONSOLE_ISSUERS</code>.
          </p>
        )
        : (
          <>
            <p>You sign in at your organisation's own page, and return here.</p>
            <ul class="choices">
              {issuers.map(({ issuer, name }) => (
                <li key={issuer}>
                  <a class="button main" href={`/console/sign-in?${new URLSearchParams({ issuer, return: to })}`}>
                    Sign in with {name}
                  </a>
                  <p class="note">{new URL(issuer).host}</p>
                </li>
              ))}
            </ul>
          </>
        )}
    </Page>
  )
}
