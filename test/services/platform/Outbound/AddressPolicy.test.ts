import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { type AddressPolicy, make, parseCidrs } from "../../../../services/platform/Outbound/AddressPolicy.ts"

const policyOf = (...cidrs: ReadonlyArray<string>): AddressPolicy =>
  make({ allowedRanges: Result.getOrThrow(parseCidrs(cidrs)), ownPorts: [] })

const closed = policyOf()

// The first and last address of every range, and the nearest addresses outside.
const refused: ReadonlyArray<readonly [range: string, ...addresses: ReadonlyArray<string>]> = [
  ["0.0.0.0/8", "0.0.0.0", "0.255.255.255"],
  ["10/8", "10.0.0.0", "10.255.255.255"],
  ["100.64/10", "100.64.0.0", "100.127.255.255"],
  ["127/8", "127.0.0.0", "127.0.0.1", "127.255.255.255"],
  ["169.254/16", "169.254.0.0", "169.254.255.255"],
  ["172.16/12", "172.16.0.0", "172.31.255.255"],
  ["192.0.0/24", "192.0.0.0", "192.0.0.255"],
  ["192.0.2/24", "192.0.2.0", "192.0.2.255"],
  ["192.88.99/24", "192.88.99.0", "192.88.99.255"],
  ["192.168/16", "192.168.0.0", "192.168.255.255"],
  ["198.18/15", "198.18.0.0", "198.19.255.255"],
  ["198.51.100/24", "198.51.100.0", "198.51.100.255"],
  ["203.0.113/24", "203.0.113.0", "203.0.113.255"],
  ["224/4", "224.0.0.0", "239.255.255.255"],
  ["240/4", "240.0.0.0", "255.255.255.254"],
  ["255.255.255.255", "255.255.255.255"],
  ["::", "::"],
  ["::1", "::1"],
  ["::/96", "::2", "::7f00:1", "::808:808"],
  ["::ffff:0:0/96, embedded", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe"],
  ["64:ff9b::/96, embedded", "64:ff9b::", "64:ff9b::10.0.0.1", "64:ff9b::ffff:ffff"],
  [
    "outside of 2000::/3",
    "::5efe:7f00:1",
    "::ffff:0:808:808",
    "1fff:ffff::",
    "4000::",
    "64:ff9c::1",
    "101::1",
    "5eff::1",
  ],
  ["64:ff9b:1::/48", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["100::/64", "100::", "100::ffff:ffff:ffff:ffff"],
  [
    "2001::/23",
    "2001::",
    "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:1::1",
    "2001:2::1",
    "2001:10::1",
    "2001:1ff::1",
  ],
  ["2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2002::/16, embedded", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::"],
  ["3fff::/20", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["5f00::/16", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fc00::/7", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fe80::/10", "fe80::", "fe80::1%eth0", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fec0::/10", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["ff00::/8", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
]

const allowed = [
  ["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"],
  ["169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255"],
  ["192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0"],
  ["203.0.112.255", "203.0.114.0", "223.255.255.255", "8.8.8.8"],
  [
    "::ffff:8.8.8.8",
    "2002:808:808::1",
    "64:ff9b::8.8.8.8",
    "2001:200::1",
    "2001:db7::1",
    "2001:db9::1",
    "2606:4700::1111",
    "2a00::1",
  ],
  ["2000::", "3ffe::1", "3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
].flat()

const metadata = [
  ...["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16"],
  ...["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"],
]

describe("the ranges that are refused by default", () => {
  for (const [range, ...addresses] of refused) {
    it(`refuses ${range}`, () => {
      for (const address of addresses) assert.isFalse(closed.allows(address), address)
    })
  }

  it("addresses just outside of them are allowed", () => {
    for (const address of allowed) assert.isTrue(closed.allows(address), address)
  })

  it("a text that is not an address is refused", () => {
    for (const text of ["", "localhost", "example.com", "1.2.3", "1.2.3.4.5", "::g", "[::1]"]) {
      assert.isFalse(closed.allows(text), text)
    }
  })

  it("a mapped, translated or 6to4 address is checked as its IPv4 address, whichever IPv6 ranges are allowed", () =>
    fc.assert(fc.property(fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)), (octets) => {
      const v4 = octets.join(".")
      const [a, b] = [octets[0] * 256 + octets[1], octets[2] * 256 + octets[3]].map((part) => part.toString(16))
      for (const cidrs of [[], ["10.0.0.0/8"], ["0.0.0.0/0"], ["64:ff9b::/96", "2002::/16"], ["::/0"]]) {
        const policy = policyOf(...cidrs)
        for (const carrier of [`::ffff:${a}:${b}`, `64:ff9b::${a}:${b}`, `2002:${a}:${b}::5`]) {
          assert.strictEqual(policy.allows(carrier), policy.allows(v4), `${carrier} with ${cidrs}`)
          assert.strictEqual(policy.allowsHttp(carrier), policy.allowsHttp(v4), `${carrier} with ${cidrs}`)
        }
      }
    })))
})

describe("the ranges that the operator allows", () => {
  it("they are allowed, also for plain http, and no other private range is", () => {
    const policy = policyOf("127.0.0.0/8", "fd12::/16")
    for (const address of ["127.0.0.1", "::ffff:127.9.9.9", "fd12::1"]) {
      assert.isTrue(policy.allows(address) && policy.allowsHttp(address), address)
    }
    for (const address of ["10.0.0.1", "::1", "fd13::1"]) {
      assert.isFalse(policy.allows(address) || policy.allowsHttp(address), address)
    }
    assert.isTrue(policy.allows("8.8.8.8"))
    assert.isFalse(policy.allowsHttp("8.8.8.8"), "public addresses are not for plain http")
  })

  it("a mapped range is read as its IPv4 range", () => {
    const policy = policyOf("::ffff:10.1.0.0/112")
    assert.isTrue(policy.allows("10.1.255.255"))
    assert.isFalse(policy.allows("10.2.0.0"))
  })

  it("a metadata address among public ones is refused", () => {
    assert.isFalse(closed.allows("168.63.129.16"))
    assert.isTrue(closed.allows("168.63.129.17"))
  })

  it("the metadata addresses are never allowed, in any notation", () => {
    const policy = policyOf(
      "0.0.0.0/0",
      "::/0",
      ...metadata.map((address) => `${address}/${address.includes(":") ? 128 : 32}`),
    )
    const wrapped = [
      "::ffff:169.254.169.254",
      "::ffff:6464:64c8",
      "::169.254.169.254",
      "::ffff:0:a9fe:a9fe",
      "64:ff9b::169.254.169.254",
      "64:ff9b:1::100.100.100.200",
      "64:ff9b:1:a9fe:a9:fe00::",
      "2002:a9fe:a9fe::1",
      "2001:0:808:808:0:0:5601:5601",
      "fd00:0ec2:0:0:0:0:0:254",
      "fd00:ec2::254%eth0",
    ]
    for (const address of [...metadata, ...wrapped]) {
      assert.isFalse(policy.allows(address), address)
      assert.isFalse(policy.allowsHttp(address), address)
    }
    for (const address of ["169.254.169.253", "fd00:ec2::253", "10.0.0.1", "::1", "127.0.0.1"]) {
      assert.isTrue(policy.allows(address), address)
    }
  })

  it("parsing fails with the text that is not a range", () => {
    for (const text of ["10.0.0.0", "10/8", "10.0.0.0/33", "fd00::/129", "localhost/8", ""]) {
      assert.deepStrictEqual(parseCidrs(["127.0.0.0/8", text]), Result.fail(text))
    }
  })
})

describe("ports", () => {
  const policy = make({ allowedRanges: [], ownPorts: [8080, 8443] })

  it("443, 8443 and ports from 1024 on are allowed", () => {
    for (const port of [443, 1024, 3000, 8000, 9443, 65535]) assert.isTrue(policy.allowsPort(port, "https:"), `${port}`)
    assert.isTrue(closed.allowsPort(8443, "https:"))
    assert.isTrue(policy.allowsPort(80, "http:"))
  })

  it("low ports, the installation's own and those of line protocols are refused", () => {
    for (const port of [0, 22, 25, 80, 444, 587, 1023, 8080, 8443, 5432, 4222, 6379, 11211, 27017, 6667]) {
      assert.isFalse(policy.allowsPort(port, "https:"), `${port}`)
    }
  })
})
