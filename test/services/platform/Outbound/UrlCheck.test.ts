import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { make, parseCidrs } from "../../../../services/platform/Outbound/AddressPolicy.ts"
import { checkUrl } from "../../../../services/platform/Outbound/UrlCheck.ts"

const policyOf = (...cidrs: ReadonlyArray<string>) =>
  make({ allowedRanges: Result.getOrThrow(parseCidrs(cidrs)), ownPorts: [8080] })

const closed = policyOf()
const loopback = policyOf("127.0.0.0/8", "::1/128")

const verdict = (url: string, policy = closed): string =>
  Result.match(checkUrl(url, policy), { onSuccess: () => "ok", onFailure: ({ code }) => code })

// Every way to write 127.0.0.1, and names that mean it.
const disguises = [
  "127.0.0.1",
  "127.1",
  "0x7f.1",
  "0x7F000001",
  "2130706433",
  "017700000001",
  "0177.0.0.01",
  "127.0.0.1.",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[0:0:0:0:0:ffff:7f00:0001]",
  "１２７.０.０.１",
  "127。0。0。1",
  "%31%32%37.1",
  "localhost",
  "localhost.",
  "LOCALHOST",
  "a.localhost",
  "a.localhost.",
]

describe("checkUrl", () => {
  it("an https URL with a name is accepted without a lookup", () => {
    for (
      const url of [
        "https://example.com",
        "https://example.com:8443/hook?x=1#y",
        "https://does-not-exist.invalid:1024/",
        "https://localhost.example.com/",
        "https://bücher.example/",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
      ]
    ) assert.strictEqual(verdict(url), "ok", url)
  })

  it("the parsed URL is returned", () => {
    const url = Result.getOrThrow(checkUrl("HTTPS://Example.COM/a b", closed))
    assert.strictEqual(url.href, "https://example.com/a%20b")
  })

  for (const host of disguises) {
    it(`${host} is recognised as loopback`, () => {
      assert.strictEqual(verdict(`https://${host}/`), "url_address")
      assert.strictEqual(verdict(`https://${host}:9000/`, loopback), "ok")
    })
  }

  it("metadata addresses are refused even when every range is allowed", () => {
    const open = policyOf("0.0.0.0/0", "::/0")
    for (const host of ["169.254.169.254", "0xa9fea9fe", "[fd00:ec2::254]", "100.100.100.200", "[::ffff:6464:64c8]"]) {
      assert.strictEqual(verdict(`https://${host}/`, open), "url_address", host)
      assert.strictEqual(verdict(`http://${host}/`, open), "url_address", host)
    }
  })

  it("plain http is accepted only for allowed literals and localhost", () => {
    for (const host of ["127.0.0.1", "127.1:9000", "[::1]:9000", "localhost:80", "localhost.", "[::ffff:127.0.0.1]"]) {
      assert.strictEqual(verdict(`http://${host}/`, loopback), "ok", host)
      assert.notStrictEqual(verdict(`http://${host}/`, closed), "ok", host)
    }
    for (const host of ["8.8.8.8", "example.com", "a.localhost", "[2606:4700::1111]"]) {
      assert.strictEqual(verdict(`http://${host}/`, loopback), "url_scheme", host)
    }
  })

  it("localhost is allowed by either address family", () => {
    assert.strictEqual(verdict("http://localhost:9000/", policyOf("::1/128")), "ok")
    assert.strictEqual(verdict("http://localhost:9000/", policyOf("127.0.0.1/32")), "ok")
    assert.strictEqual(verdict("http://localhost:9000/", policyOf("127.0.0.2/32")), "url_address")
  })

  it("other schemes, userinfo, refused ports and texts that are not a URL are refused", () => {
    assert.strictEqual(verdict("http://example.com/"), "url_scheme")
    assert.strictEqual(verdict("ftp://example.com/"), "url_scheme")
    assert.strictEqual(verdict("file:///etc/passwd"), "url_scheme")
    assert.strictEqual(verdict("javascript:alert(1)"), "url_scheme")
    assert.strictEqual(verdict("https://user@example.com/"), "url_userinfo")
    assert.strictEqual(verdict("https://:secret@example.com/"), "url_userinfo")
    for (const port of [22, 25, 80, 5432, 8080]) {
      assert.strictEqual(verdict(`https://example.com:${port}/`), "url_port", `${port}`)
    }
    assert.strictEqual(
      verdict("http://127.0.0.1:8080/", loopback),
      "url_port",
      "the installation's own port, although loopback is allowed",
    )
    for (
      const text of [
        "",
        "example.com",
        "https://",
        "https://./",
        "https://[::1",
        "https://1.2.3.4.5/",
        "https://exa mple.com/",
        "https:///example.com",
        "https:/example.com",
        "https:example.com",
        "https:\\\\example.com",
      ]
    ) {
      assert.strictEqual(verdict(text), "url_invalid", text)
    }
  })

  it("2048 characters are counted, not code units", () => {
    const head = "https://example.com/"
    assert.strictEqual(verdict(head + "a".repeat(2048 - head.length)), "ok")
    assert.strictEqual(verdict(head + "a".repeat(2049 - head.length)), "url_too_long")
    assert.strictEqual(verdict(head + "😀".repeat(2048 - head.length)), "ok")
    assert.strictEqual(verdict(head + "😀".repeat(2049 - head.length)), "url_too_long")
  })

  it("no text makes it throw, and no message repeats the URL", () =>
    fc.assert(fc.property(
      fc.oneof(fc.string({ unit: "binary" }), fc.webUrl({ withFragments: true }), fc.ipV4Extended(), fc.ipV6()),
      fc.constantFrom("", "https://", "http://", "https://[", "https://user:hunter2@"),
      (text, before) => {
        const result = checkUrl(before + text, closed)
        if (Result.isFailure(result)) assert.match(result.failure.message, /^URL [ a-z0-9,:/]+\.$/i)
      },
    )))

  it("no literal that the policy refuses is accepted in any notation", () =>
    fc.assert(fc.property(
      fc.oneof(fc.ipV4Extended(), fc.ipV6().map((address) => `[${address}]`), fc.nat(0xffffffff).map(String)),
      (host) => {
        const result = checkUrl(`https://${host}/`, closed)
        if (Result.isSuccess(result)) {
          const hostname = result.success.hostname.replace(/^\[|\]$/g, "")
          assert.isTrue(closed.allows(hostname), hostname)
        }
      },
    )))
})
