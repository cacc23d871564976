// Tests that the client's sources, with those of the contract, use nothing that Node 20 or browsers lack.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')

/** Compiles a program with the built-ins of ES2023, which Node 20 has, and of browsers, but without those of Node. */
function compileForAll(program: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-portability-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const compilerOptions = {
    ...{ lib: ['es2023', 'dom', 'dom.iterable'], types: [] },
    rewriteRelativeImportExtensions: false,
  }
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files: ['program.ts'] }
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(dir, 'program.ts'), program)
  return spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', dir], { encoding: 'utf8' }).stdout
}

test('the client compiles without the types of Node and with ES2023 only', () => {
  expect(compileForAll(`export * from '${join(import.meta.dirname, 'index.ts')}'`)).toBe('')
})

test('newer built-ins and those of Node would be noticed', () => {
  const errors = compileForAll(`export const used = [Promise.withResolvers<void>(), Buffer.from('')]`)
  expect(errors).toContain('withResolvers')
  expect(errors).toContain('Buffer')
})
