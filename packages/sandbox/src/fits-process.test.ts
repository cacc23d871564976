// Which inline handlers can also run in a child process.
import { defineHandler } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { processFit } from './fits-process.ts'
import { where as handler } from './handlers.fixture.ts'
import { where as task } from './tasks.fixture.ts'

const withoutResources = { resources: [], isolatedResources: undefined }
const isolatedResources = new URL('./resources.fixture.ts', import.meta.url).href

it('a handler that a file exports fits', async () => {
  expect(await processFit(withoutResources)(handler)).toBe(true)
})

it.each([
  ['that its file does not export', defineHandler(task, handler.module, () => ({ pid: 1, thread: 0, n: 1 }))],
  ['whose file does not exist', { ...handler, module: new URL('./missing.ts', import.meta.url).href }],
  ['that is not in a file', { ...handler, module: 'data:text/javascript,' }],
])('a handler %s does not fit', async (_why, unfit) => {
  expect(await processFit(withoutResources)(unfit)).toBe(false)
})

it('a handler in the program itself does not fit, because a child process would start the program again', async () => {
  const program = new URL(handler.module).pathname
  expect(await processFit({ ...withoutResources, program })(handler)).toBe(false)
})

it.each([
  [['first'], isolatedResources, true],
  [['first', 'second'], isolatedResources, true],
  [['first', 'database'], isolatedResources, false],
  [['first'], undefined, false],
  [['first'], new URL('./broken.fixture.ts', import.meta.url).href, false],
])('a handler fits if each of the resources %j is opened in child processes (by %s): %s', async (...given) => {
  const [resources, module, fits] = given
  expect(await processFit({ resources, isolatedResources: module })(handler)).toBe(fits)
})
