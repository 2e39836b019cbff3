/** The frame of a screen: its heading, which gets the focus after a navigation, and the title of the tab. */
import type { ComponentChildren, JSX } from "preact"
import { brandName } from "../Visitor.ts"
import { useLayoutEffect, useRef } from "preact/hooks"

let first = true

export interface PageProps {
  readonly title: string
  /** The way up, for a page of one thing. */
  readonly up?: readonly [href: string, label: string]
  /** Buttons beside the heading. */
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

export const Page = ({ actions, children, title, up }: PageProps): JSX.Element => {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    // The page that the browser itself loaded keeps the browser's focus.
    if (!first) heading.current?.focus({ preventScroll: true })
    first = false
  }, [])
  useLayoutEffect(() => {
    document.title = [title, brandName.value].filter((part) => part !== "").join(" – ")
  }, [title, brandName.value])
  return (
    <>
      {up === undefined ? null : (
        <nav class="up" aria-label="Up">
          <a href={up[0]}>← {up[1]}</a>
        </nav>
      )}
      <div class="head">
        <h1 tabIndex={-1} ref={heading}>{title}</h1>
        {actions === undefined ? null : <div class="actions">{actions}</div>}
      </div>
      {children}
    </>
  )
}
