// Tests which texts a keyring accepts as keys.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createKeyring } from './keyring.ts'

const here = { address: '127.0.0.1', forwarded: false }
const KEY = 'a-key-0123456789abcdef'
const LONGER = `${KEY}-and-more`

it.each([KEY, LONGER])('the key %s is found, and has a fingerprint of its own', (key) => {
  const found = createKeyring([KEY, LONGER]).find(key, here)
  expect(found?.text).toBe(key)
  expect(found?.fingerprint).toMatch(/^[0-9a-f]{8}$/)
})

it('no other text is accepted, however much of it is right', () => {
  const ring = createKeyring([KEY, LONGER])
  const near = [KEY, LONGER].flatMap((key) => [
    key.slice(0, -1),
    `${key}x`,
    `${key}\0`,
    `${key}é`,
    `${key}水`,
    ` ${key}`,
  ])
  const wrong = fc
    .oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', ...near), fc.mixedCase(fc.constantFrom(KEY, LONGER)))
    .filter((text) => text !== KEY && text !== LONGER)
  fc.assert(
    fc.property(wrong, (text) => {
      expect(ring.find(text, here)).toBeUndefined()
      // What remains of the wrong text does not affect the next one.
      expect(ring.find(KEY, here)?.text).toBe(KEY)
    }),
  )
})

it('a keyring without keys accepts nothing', () => {
  expect(createKeyring([]).find('', here)).toBeUndefined()
})

it('a key has the name in front of it, or its fingerprint, and several keys may have one name', () => {
  const ring = createKeyring([`shop:${KEY}`, `shop:${LONGER}`, `${KEY}2`], `dev:${KEY}3`)
  expect(ring.find(KEY, here)?.name).toBe('shop')
  expect(ring.find(LONGER, here)?.name).toBe('shop')
  const unnamed = ring.find(`${KEY}2`, here)
  expect(unnamed?.name).toBe(unnamed?.fingerprint)
  expect(ring.find(`${KEY}3`, here)).toMatchObject({ name: 'dev', loopbackOnly: true })
  expect(ring.find(`shop:${KEY}`, here)).toBeUndefined()
  expect(ring.names).toEqual(['shop', unnamed?.name, 'dev'])
})
