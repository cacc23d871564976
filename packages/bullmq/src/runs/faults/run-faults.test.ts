// Tests that the run of a pipeline ends with the same output, wherever a process dies that changes the run or delivers its entries.
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { type ScriptProxy, scriptProxy } from '../../internals/index-model/script-proxy.fixture.ts'
import {
  claimEntriesScript,
  deleteEntriesScript,
  deleteRunEntriesScript,
  emitItemsScript,
  endRunTasksScript,
  forwardScript,
  readRunScript,
  startRunScript,
  stopRunScript,
  storeRuleScript,
  visitRunScript,
} from '../../store/scripts.ts'
import { openRunWorld } from './run-world.fixture.ts'

const START = {
  'starts the run': startRunScript.lua,
  'adds the source': forwardScript.lua,
  'reads the run': readRunScript.lua,
}
const WORK = {
  'emits items': emitItemsScript.lua,
  'adds a task': forwardScript.lua,
  'claims the end of a task': claimEntriesScript.lua,
  'reports the end of a task': endRunTasksScript.lua,
  'deletes the end of a task': deleteEntriesScript.lua,
  'deletes a delivered task': deleteRunEntriesScript.lua,
  'visits the run': visitRunScript.lua,
}
const CANCEL = {
  'stops the run': stopRunScript.lua,
  'stores the rule': storeRuleScript.lua,
  'deletes the delivered rule': deleteRunEntriesScript.lua,
  'reads the run': readRunScript.lua,
}

const cases = (steps: Readonly<Record<string, string>>) =>
  Object.entries(steps).flatMap(([step, lua]) => (['before', 'after'] as const).map((when) => ({ step, lua, when })))

async function openProxy(): Promise<ScriptProxy> {
  const proxy = await scriptProxy(inject('redisUrl'))
  onTestFinished(() => proxy.close())
  return proxy
}

/** Lets a call go through the proxy until its process dies. */
async function untilDeath(
  proxy: ScriptProxy,
  { lua, when }: { lua: string; when: 'before' | 'after' },
  call: () => Promise<unknown>,
) {
  const death = proxy.closeAt({ scripts: [lua], when }).then(() => 'died')
  expect(await Promise.race([death, call().then(() => 'survived')])).toBe('died')
}

it.each(cases(START))('a run is started once if its client dies $when the script that $step', async (fault) => {
  const world = await openRunWorld({ count: 5 })
  const proxy = await openProxy()
  await untilDeath(proxy, fault, world.open(proxy.url).start)
  const other = world.open()
  await other.start()
  await other.work()
  expect(await world.outputOf()).toEqual(world.output)
  expect(await world.remains()).toEqual([])
})

it.each(cases(WORK))('a run has the same output if a process dies $when the script that $step', async (fault) => {
  const world = await openRunWorld({ count: 9 })
  const proxy = await openProxy()
  await world.open().start()
  // The source has emitted its first items, so that the process dies while it runs a stage.
  await world.open().runTasks()
  await untilDeath(proxy, fault, world.open(proxy.url).work)
  await world.open().work()
  expect(await world.outputOf()).toEqual(world.output)
  await eventually(() => world.announced.length > 0)
  expect(world.announced).toEqual([world.id])
  expect([...world.ran.values()].filter((times) => times !== 1)).toEqual([])
  expect(await world.remains()).toEqual([])
})

it.each(cases({ ...WORK, 'stores the rule': storeRuleScript.lua }))(
  'a run that takes some results has the same output if a process dies $when the script that $step',
  async (fault) => {
    const world = await openRunWorld({ count: 50, take: 8 })
    const proxy = await openProxy()
    await world.open().start()
    await world.open().runTasks()
    await untilDeath(proxy, fault, world.open(proxy.url).work)
    await world.open().work()
    expect(await world.outputOf()).toEqual(world.output)
    await eventually(() => world.announced.length > 0)
    expect(world.announced).toEqual([world.id])
    expect(await world.remains()).toEqual([])
  },
)

it.each(cases(CANCEL))('a run is cancelled if its client dies $when the script that $step', async (fault) => {
  const world = await openRunWorld({ count: 50 })
  const proxy = await openProxy()
  await world.open().start()
  await untilDeath(proxy, fault, world.open(proxy.url).cancel)
  await world.open().cancel()
  await world.open().work()
  expect(await world.result()).toBe('cancelled')
  expect(world.ran.size).toBe(0)
  expect(await world.remains()).toEqual([])
})

it('the leader remembers a run that has ended until what a dead process has left of it is delivered', async () => {
  const world = await openRunWorld({ count: 50 })
  const proxy = await openProxy()
  const leader = world.open()
  await leader.start()
  await untilDeath(proxy, { lua: storeRuleScript.lua, when: 'before' }, world.open(proxy.url).cancel)
  await leader.runTasks()
  await leader.visit()
  expect(await world.result()).toBe('cancelled')
  expect(await world.remains()).not.toEqual([])
  await leader.work()
  expect(await world.remains()).toEqual([])
})
