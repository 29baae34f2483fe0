// Sends files in pieces to /api/upload. The transfer lives on `window`, so that it goes on while another page is open;
// the part drawn in the page only shows it. Names are written with textContent alone: they come from strangers' folders.

const PIECE = 8 * 1024 * 1024
const MB = 1024 * 1024

function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, "0")).join("")
}

class Transfer {
  constructor(generation) {
    this.generation = generation
    this.id = newId()
    this.files = [] // {name, size, have, file}
    this.running = false
    this.paused = false
    this.problem = ""
    this.marks = [] // [time, bytes sent] of the last seconds, for the rate
    this.draw = () => {}
  }

  add(files) {
    for (const { file, name } of files) {
      const known = this.files.find(f => f.name === name)
      if (known && known.size === file.size && known.file.lastModified === file.lastModified) continue
      if (known) this.files.splice(this.files.indexOf(known), 1)
      this.files.push({ name, size: file.size, have: 0, file, replaces: Boolean(known) })
    }
    this.problem = ""
    this.run()
  }

  url(name) {
    return `/api/upload/${this.id}` + (name === undefined ? "" : "/" + name.split("/").map(encodeURIComponent).join("/"))
  }

  get size() { return this.files.reduce((sum, f) => sum + f.size, 0) }
  get have() { return this.files.reduce((sum, f) => sum + f.have, 0) }
  get done() { return this.files.length > 0 && this.files.every(f => f.sent) }

  async run() {
    if (this.running) return
    this.running = true
    try {
      let next
      while (!this.paused && !this.problem && (next = this.files.find(f => !f.sent))) await this.send(next)
    } finally {
      this.running = false
      this.draw()
    }
  }

  async send(f) {
    let failures = 0
    do {
      if (this.paused || !this.files.includes(f)) return
      const piece = f.file.slice(f.have, f.have + PIECE)
      try {
        this.abort = new AbortController()
        const reply = await fetch(`${this.url(f.name)}?offset=${f.have}&size=${f.size}`,
          { method: "PUT", body: piece, signal: this.abort.signal })
        const told = await reply.json()
        if (reply.ok || (reply.status === 409 && told.have !== undefined && failures++ < 20)) f.have = told.have
        else { this.problem = told.error; return }
        if (reply.ok) { failures = 0; this.note = "" }
        else await new Promise(resolve => setTimeout(resolve, 250)) // the request before this one is still ending
      } catch (error) {
        if (this.paused || !this.files.includes(f)) return
        if (error.name === "NotReadableError") { this.problem = `${f.name} changed on your disk. Remove it and drop it again.`; return }
        const wait = Math.min(30, 2 ** failures++)
        this.note = `connection lost, trying again in ${wait} s`
        this.draw()
        await new Promise(resolve => setTimeout(resolve, 1000 * wait))
        await this.resume(f)
      }
      this.mark()
      this.draw()
    } while (f.have < f.size)
    f.sent = true
  }

  async resume(f) {
    try {
      const reply = await fetch(this.url(f.name))
      if (reply.ok) f.have = (await reply.json()).have
    } catch { /* still no connection: the next attempt asks again */ }
  }

  mark() {
    const now = performance.now()
    this.marks = [...this.marks.filter(([time]) => now - time < 6000), [now, this.have]]
  }

  get rate() {
    const first = this.marks[0], last = this.marks[this.marks.length - 1]
    return first && last[0] > first[0] ? Math.max(0, (last[1] - first[1]) / (last[0] - first[0]) * 1000) : 0
  }

  async remove(f) {
    this.files.splice(this.files.indexOf(f), 1)
    if (this.running && !f.sent) this.abort?.abort()
    await fetch(this.url(f.name), { method: "DELETE" }).catch(() => {})
    this.problem = ""
    this.run()
  }

  async cancel() {
    this.paused = true
    this.abort?.abort()
    this.files = []
    await fetch(this.url(), { method: "DELETE" }).catch(() => {})
    this.id = newId()
    this.paused = false
    this.problem = this.note = ""
    this.marks = []
    this.draw()
  }

  toggle() {
    this.paused = !this.paused
    if (this.paused) this.abort?.abort()
    else { this.problem = ""; this.marks = []; this.run() }
    this.draw()
  }
}

async function walk(entry, into) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject))
    into.push({ file, name: entry.fullPath.replace(/^\/+/, "") })
  } else if (entry.isDirectory) {
    const reader = entry.createReader()
    for (;;) { // a reader hands out at most 100 entries a call
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
      if (!some.length) break
      for (const one of some) await walk(one, into)
    }
  }
}

async function dropped(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean)
  if (!entries.length) return [...transfer.files].map(file => ({ file, name: file.name }))
  const found = []
  for (const entry of entries) await walk(entry, found)
  return found
}

function size(bytes) {
  return bytes < MB ? `${Math.ceil(bytes / 1024).toLocaleString("en")} KB` : `${(bytes / MB).toLocaleString("en", { maximumFractionDigits: 1 })} MB`
}

function sentence(up) {
  const whole = `${size(up.have)} of ${size(up.size)}`
  if (up.problem) return `Stopped at ${whole}: ${up.problem}`
  if (up.done) return `${up.files.length} file${up.files.length === 1 ? "" : "s"} on the server, ${size(up.size)}. Now import below.`
  if (up.paused) return `Paused at ${whole}`
  const left = up.rate ? `, ${Math.ceil((up.size - up.have) / up.rate)} s left` : ""
  return `${whole} · ${(up.rate / MB).toFixed(0)} MB/s${left}` + (up.note ? ` · ${up.note}` : "")
}

function row(up, f) {
  const line = document.createElement("li")
  const name = document.createElement("span"), told = document.createElement("span"), drop = document.createElement("button")
  name.className = "name"
  name.textContent = f.name
  told.className = "size"
  told.textContent = (f.sent ? "✓ " : f.have ? `${Math.floor(100 * f.have / f.size)} % of ` : "waiting, ") + size(f.size) + (f.replaces ? ", replaced" : "")
  drop.textContent = "✕"
  drop.title = "Remove this file"
  drop.setAttribute("aria-label", `Remove ${f.name}`)
  drop.onclick = () => up.remove(f)
  line.append(name, told, drop)
  return line
}

export default function ({ parentElement, data, setStateValue }) {
  if (!window.eagle3dashUpload || window.eagle3dashUpload.generation !== data.generation) {
    window.eagle3dashUpload = new Transfer(data.generation)
  }
  const up = window.eagle3dashUpload
  const find = name => parentElement.querySelector(name)
  const zone = find(".zone")

  up.draw = () => {
    find(".status").hidden = !up.files.length
    find(".fill").style.width = up.size ? `${100 * up.have / up.size}%` : "0"
    find(".text").textContent = sentence(up)
    find(".pause").textContent = up.paused || up.problem ? "Resume" : "Pause"
    find(".pause").hidden = up.done
    find(".cancel").textContent = up.done ? "Remove all" : "Cancel"
    find(".list").replaceChildren(...up.files.slice(0, 400).map(f => row(up, f)))
    const told = up.done ? JSON.stringify([up.id, up.files.map(f => [f.name, f.size])]) : ""
    if (told !== (up.told ?? data.told)) {
      up.told = told
      setStateValue("upload", up.done ? { id: up.id, files: up.files.map(f => ({ name: f.name, size: f.size })), told } : null)
    }
  }

  zone.ondragover = event => { event.preventDefault(); zone.classList.add("over") }
  zone.ondragleave = () => zone.classList.remove("over")
  zone.ondrop = async event => {
    event.preventDefault()
    zone.classList.remove("over")
    up.add(await dropped(event.dataTransfer))
  }
  for (const [button, input] of [[".files", ".pick-files"], [".folder", ".pick-folder"]]) {
    find(button).onclick = () => find(input).click()
    find(input).onchange = event => {
      up.add([...event.target.files].map(file => ({ file, name: file.webkitRelativePath || file.name })))
      event.target.value = ""
    }
  }
  find(".pause").onclick = () => (up.problem ? (up.problem = "", up.run(), up.draw()) : up.toggle())
  find(".cancel").onclick = () => up.cancel()
  up.draw()
  return () => { up.draw = () => {}; up.told = undefined }
}
