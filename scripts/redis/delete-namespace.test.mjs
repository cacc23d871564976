// Deletes a namespace on a real Redis that others use, too.
import { randomUUID } from 'node:crypto'
import { expect, inject, it } from 'vitest'
import { deleteNamespace } from './delete-namespace.mjs'
import { askRedis } from './probe.mjs'

it('deletes every key of a namespace, and none of another one whose name begins with the same characters', async () => {
  const url = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const own = [`{${namespace}}:schema`, `{${namespace}.mail}:mail:meta`, `{${namespace}:run-1}:meta`]
  const others = [`{${namespace}1}:schema`, `{${namespace}-b.mail}:mail:meta`, `x{${namespace}}`]
  // More keys than one page of a scan returns.
  const many = Array.from({ length: 6000 }, (_, i) => `{${namespace}.cpu}:cpu:${i}`)
  await askRedis(url, ['MSET', ...[...own, ...others, ...many].flatMap((key) => [key, '1'])])
  await deleteNamespace(url, namespace)
  expect((await askRedis(url, ['KEYS', `*{${namespace}*`])).toSorted()).toEqual(others.toSorted())
  await askRedis(url, ['UNLINK', ...others])
})
