// Starts a Prometheus that scrapes Bullpen's processes on this machine and evaluates Bullpen's rules.
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { statusOf } from '../system/http-status.mjs'
import { freePort } from '../system/ports.mjs'
import { stopWithThisProcess } from '../system/stop-with-this-process.mjs'
import { UserError } from '../system/user-error.mjs'
import { resolvePrometheus } from './programs.mjs'

const RULES = resolve(import.meta.dirname, '../../k8s/alerts/bullpen.rules.yaml')
/** The interval of a group of rules, which would otherwise take precedence over that of the configuration. */
const OWN_INTERVAL = /^( +interval: ).*$/gm
const START_TIMEOUT = 60_000 // in ms, because reading the data of earlier runs takes time
const LAST_OUTPUT = 2_000 // characters

/**
 * Resolves when Prometheus is ready. It ends with this process at the latest.
 * @param {object} options
 * @param {string} options.dir where its configuration and data are kept; created if missing
 * @param {readonly string[]} [options.targets] the host and port of each process; its metrics are at `/metrics`
 * @param {string} [options.targetsFile] a file of targets in the format of `file_sd_configs`, which may change at any time
 * @param {string} [options.interval] between two scrapes, and between two evaluations of the rules
 * @param {number} [options.port] a free one by default
 */
export async function startPrometheus({ dir, targets = [], targetsFile, interval = '5s', port }) {
  const { prometheus } = await resolvePrometheus()
  const address = `127.0.0.1:${port ?? (await freePort())}`
  mkdirSync(dir, { recursive: true })
  const config = join(dir, 'prometheus.yml')
  const rules = join(dir, 'bullpen.rules.yaml')
  writeFileSync(rules, readFileSync(RULES, 'utf8').replace(OWN_INTERVAL, `$1${interval}`))
  writeFileSync(config, JSON.stringify(configuration({ rules, targets, targetsFile, interval }))) // JSON is YAML
  const flags = {
    'config.file': config,
    'storage.tsdb.path': join(dir, 'data'),
    'storage.tsdb.retention.time': '1d',
    'web.listen-address': address,
    'log.level': 'warn',
  }
  // Ctrl-C must not stop it before the processes that it scrapes, so it gets a process group of its own.
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
  const child = spawn(prometheus, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output = (output + text).slice(-LAST_OUTPUT)
  })
  let ended
  const exit = new Promise((done) => {
    const end = (how) => {
      ended = how
      done()
    }
    child.once('error', (error) => end(error.message))
    child.once('exit', (code, signal) => end(signal ?? `it exited with code ${code}`))
  })
  const cancelStop = child.pid === undefined ? () => {} : stopWithThisProcess({ pid: child.pid })
  const stop = async () => {
    child.kill('SIGTERM')
    await exit
    cancelStop()
  }
  const url = `http://${address}`
  const deadline = performance.now() + START_TIMEOUT
  while (ended === undefined && (await statusOf(`${url}/-/ready`)) !== 200) {
    if (performance.now() > deadline) break
    await sleep(20)
  }
  if (ended !== undefined || performance.now() > deadline) {
    await stop()
    throw new UserError(`${prometheus} did not start on ${address}: ${ended ?? 'it is not ready'}\n${output}`.trimEnd())
  }
  return { url, pid: child.pid, stop }
}

function configuration({ rules, targets, targetsFile, interval }) {
  return {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: [rules],
    scrape_configs: [
      {
        job_name: 'bullpen',
        static_configs: [{ targets }],
        file_sd_configs: targetsFile === undefined ? [] : [{ files: [targetsFile], refresh_interval: interval }],
      },
    ],
  }
}
