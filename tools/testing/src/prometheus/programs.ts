// Finds the programs of Prometheus. If they are missing, the test fails with a message that says what to install.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

export interface PrometheusPrograms {
  readonly prometheus: string
  readonly promtool: string
}

/** The scripts are untyped JavaScript, so they are imported by URL, which the compiler does not resolve. */
const script = new URL('../../../../scripts/prometheus/programs.mjs', import.meta.url).href

export async function prometheusPrograms(): Promise<PrometheusPrograms> {
  const programs = (await import(script)) as { resolvePrometheus(): Promise<PrometheusPrograms> }
  return programs.resolvePrometheus()
}

/** Runs promtool with `input` on its standard input, and returns all of its output. */
export async function promtool(args: readonly string[], input = ''): Promise<{ code: number; output: string }> {
  const child = spawn((await prometheusPrograms()).promtool, args)
  const exited = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? 1)))
  child.stdin.on('error', () => {}).end(input)
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: await exited, output: out + errors }
}
