/** The shell around every screen: skip link, navigation by what the visitor may see, the screen, dialogs. */
import { computed, signal } from "@preact/signals"
import type { ComponentType, JSX } from "preact"
import { useEffect } from "preact/hooks"
import { embedded, go, here, type Params, paramsOf } from "./Location.ts"
import { Announcements } from "./parts/Announce.tsx"
import { Failure } from "./parts/Failure.tsx"
import { Page } from "./parts/Page.tsx"
import { inUtc } from "./parts/When.tsx"
import { slow } from "./Resource.ts"
import { parts, type Screen, screens } from "./Screens.tsx"
import { SignIn } from "./SignIn.tsx"
import { StepUp } from "./StepUp.tsx"
import { embedEnded, loadSession, readOnly, type Session, session, sessionFailure, signOut } from "./Visitor.ts"

const seen = computed(() => {
  const one = session.value
  return one === undefined
    ? []
    : screens.filter((screen) => one.session !== null && screen.sees(one) && (!embedded || screen.embedded === true))
})

interface Found {
  readonly screen: Screen
  readonly params: Params
}

const found = computed((): Found | null => {
  const { pathname } = here.value
  for (const screen of seen.value) {
    const params = paramsOf(screen.path, pathname)
    if (params !== null) return { screen, params }
  }
  return null
})

type Loaded = ComponentType<{ readonly params: Params }>
const loaded = signal<ReadonlyMap<string, Loaded>>(new Map())

/** The screen whose file could not be loaded. */
const failed = signal<string | null>(null)

const load = async ({ load, path }: Screen): Promise<void> => {
  try {
    const { default: component } = await load()
    loaded.value = new Map(loaded.value).set(path, component)
  } catch {
    failed.value = path
  }
}

const NotFound = (): JSX.Element => (
  <Page title="There is no such page">
    <p>It may have been for another person, or its address is not complete.</p>
    <p>
      <a href="/console/">To your first page</a>
    </p>
  </Page>
)

/** The network failed, or the program was replaced by another version, whose files have other names. */
const NotLoaded = (): JSX.Element => (
  <Page title="This page could not be loaded">
    <p>The program may have been replaced by a newer one, or the network failed.</p>
    <p>
      <button type="button" onClick={() => location.reload()}>Load it again</button>
    </p>
  </Page>
)

const Current = (): JSX.Element | null => {
  const home = /^\/console\/?(embed)?$/.test(here.value.pathname)
  const { params, screen } = found.value ?? {}
  useEffect(() => {
    const first = seen.value.find((one) => embedded || session.value !== undefined && one.home?.(session.value))
    if (home && first !== undefined) go(first.homeAt?.(session.value!) ?? first.path, { replace: true })
    else if (screen !== undefined && !loaded.value.has(screen.path)) void load(screen)
  }, [home, screen])
  if (home) return null
  if (screen === undefined) return <NotFound />
  const Component = loaded.value.get(screen.path)
  if (Component === undefined && failed.value === screen.path) return <NotLoaded />
  // Another object of the same screen is another page.
  return Component === undefined ? null : <Component key={JSON.stringify(params)} params={params!} />
}

const inPart = (path: string, pathname: string) => pathname === path || pathname.startsWith(`${path}/`)

/** Whether the navigation is open on a phone, where it takes the room of the page. */
const menuOpen = signal(false)

const MenuButton = (): JSX.Element => (
  <button
    type="button"
    class="menu-button"
    aria-expanded={menuOpen.value}
    aria-controls="menu"
    onClick={() => void (menuOpen.value = !menuOpen.value)}
  >
    Menu
  </button>
)

const Navigation = (): JSX.Element => {
  const { pathname } = here.value
  useEffect(() => void (menuOpen.value = false), [pathname])
  return (
    <nav id="menu" class={embedded ? "menu strip" : menuOpen.value ? "menu" : "menu folded"} aria-label="Main">
      {parts.map((part) => {
        const lines = seen.value.filter((screen) => screen.part === part && screen.menu !== undefined)
        return lines.length === 0 ? null : (
          <div key={part}>
            <p class="part" id={`part-${part}`}>{part}</p>
            <ul aria-labelledby={`part-${part}`}>
              {lines.map(({ menu, path }) => (
                <li key={path}>
                  <a href={path} aria-current={inPart(path, pathname) ? "page" : undefined}>{menu}</a>
                </li>
              ))}
            </ul>
          </div>
        )
      })}
    </nav>
  )
}

const nameOf = ({ account, person }: Session) => person?.display_name ?? account?.name ?? person?.email ?? "Signed in"

const Who = ({ one }: { readonly one: Session }): JSX.Element => (
  <details class="who">
    <summary>{nameOf(one)}</summary>
    <div class="sheet">
      <p class="note">{[one.person?.email, one.account?.email].filter((text) => text != null).join(", ")}</p>
      <button type="button" aria-pressed={inUtc.value} onClick={() => void (inUtc.value = !inUtc.value)}>
        Times in UTC
      </button>
      <button type="button" onClick={() => void signOut(false)}>Sign out</button>
      <button type="button" onClick={() => void signOut(true)}>Sign out everywhere</button>
    </div>
  </details>
)

const Notes = ({ one }: { readonly one: Session }): JSX.Element => (
  <>
    {one.auditor
      ? <p class="banner">You are an auditor: you read who may act and who decided it, and change nothing.</p>
      : readOnly.value
      ? <p class="banner">This console may only read: buttons that change something are off.</p>
      : null}
    {one.installation.state === "held"
      ? <p class="banner bad">This installation is held: it decides nothing until an operator opens it.</p>
      : null}
  </>
)

/** Says on any screen that an answer takes long. */
const Slow = (): JSX.Element => (
  <div role="status">
    {slow.value.size === 0 ? null : (
      <p class="banner">
        The answer takes longer than usual. This page goes on waiting.{" "}
        <button type="button" onClick={() => slow.value.forEach((reload) => void reload())}>Try again</button>
      </p>
    )}
  </div>
)

const Brand = (): JSX.Element => {
  const { logo_url, name } = session.value?.brand ?? { logo_url: null, name: embedded ? "" : "Console" }
  const content = (
    <>
      {logo_url === null ? null : <img src={logo_url} alt="" />}
      <span>{name}</span>
    </>
  )
  return embedded ? <span class="brand">{content}</span> : <a class="brand" href="/console/">{content}</a>
}

const Ended = (): JSX.Element => (
  <Page title="This view has ended">
    <p>Its link was used already, or its time is over. Load the page around it again.</p>
  </Page>
)

export const Shell = (): JSX.Element => {
  const one = embedEnded.value ? undefined : session.value
  const signedIn = one !== undefined && one.session !== null
  return (
    <>
      <a class="skip" href="#main">Skip to the page</a>
      <header>
        <Brand />
        {signedIn && !embedded
          ? (
            <>
              <MenuButton />
              <Who one={one} />
            </>
          )
          : null}
      </header>
      {signedIn ? <Navigation /> : null}
      <main id="main" tabIndex={-1}>
        {embedEnded.value ? <Ended /> : null}
        <Failure of={sessionFailure} retry={loadSession} />
        {one === undefined ? null : signedIn
          ? (
            <>
              <Notes one={one} />
              <Slow />
              <Current />
            </>
          )
          : <SignIn />}
      </main>
      <StepUp />
      <Announcements />
    </>
  )
}
